//! The screens of acpctl: all sessions at a glance, and one conversation.
//!
//! ```text
//!  keys ─┐
//!  acpd ─┼─▶ driver ──events──▶ app: AppState::update ──effects──▶ driver
//!  time ─┘      │                       │
//!            term: modes          view ─┴▶ frames
//! ```
//!
//! Only `driver` and `term` have side effects. Everything else is a function of the events.
//!
//! Architecture invariant: an agent's text reaches the screen only as [`acpd_view::text::Text`],
//! which is escaped.

mod app;
mod canvas;
mod driver;
mod files;
mod fleet;
mod input;
mod keymap;
mod pick_list;
mod question;
mod term;

pub use app::{Opens, Scene};
pub use canvas::Theme;
pub use driver::{Door, EditText, ScreenError, ScreenResult, ScreenStart, run};
pub use question::{Choice, ChoiceEffect, answers, asks, rows};
