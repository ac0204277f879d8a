//! A keeper: a small process between this one and a command, to which all orphans of the command go, so that what
//! leaves its parents, its session and its environment behind is still found and ended.
//!
//! ```text
//!  daemon ── control: what to run ─▶ keeper ── starts ─▶ command ─▶ its tree
//!         ◀── its pid, how it ended ──┘ ▲                              │ orphans
//!         ── closed: end the tree ──────┘◀─────────────────────────────┘
//! ```
//!
//! The keeper ends when nothing of the tree is left. When the control connection closes, because the daemon has
//! died or drops it, the keeper ends the tree. Only Linux has keepers: elsewhere orphans cannot come to one, and on
//! Windows a Job holds the tree.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::{Control, Lease, dismiss, run, wrap};

/// The argument that makes a program a keeper: [`run`] is to be called first in `main`.
pub const ARGUMENT: &str = "keep";
