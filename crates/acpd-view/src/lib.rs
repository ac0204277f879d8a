//! The view of a conversation. No I/O, no clock.
//!
//! ```text
//! journal lines ──▶ State: header, turns, blocks ──▶ styled lines
//!                   answers: Markdown ───────────────────────────────────────────┘
//! ```
//!
//! - [`State`] folds journal lines into [`Block`]s, independent of the client and of pages.
//! - [`Markdown`] turns growing text into lines of a given width.
//! - [`Text`] is the only displayed type, with a [`Style`] for each part ([`mod@text`]).
//!
//! Architecture invariant: only [`Text`] is printed, so no text of an agent reaches a terminal
//! unescaped.

pub mod about;
mod block;
mod body;
mod diff;
mod fold;
pub mod form;
mod header;
pub mod human;
mod lenient;
mod markdown;
mod settings;
mod sheet;
mod summary;
mod terminal;
pub mod text;

pub use block::{
    Block, Consent, Content, Delegation, Folding, Id, Kind, Location, Message, Notice, Plan,
    PlanEntry, Progress, Question, Severity, Source, Subagent, ToolCall, ToolContent, Topic,
};
pub use body::CallBody;
pub use diff::{Change, DiffLine, FileContent, FileDiff};
pub use fold::{Started, State, Turn, cut_short, person};
pub use header::{Choice, Command, CommandInput, ConfigOption, Header, Mode};
pub use markdown::{Markdown, fenced_in};
pub use settings::{Modes, Settings};
pub use sheet::{Sheet, asked_change};
pub use summary::{Row, describe, group_summary, icon, plan, rows, turn_end};
pub use text::{Role, Style, Text};
