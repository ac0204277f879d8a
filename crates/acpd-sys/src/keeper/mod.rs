//! A keeper: a small process between this one and a command. Orphans of the command become its
//! children, so processes that leave their parents, session and environment are still found and
//! ended.
//!
//! ```text
//!  daemon ── control: what to run ─▶ keeper ── starts ─▶ command ─▶ its tree
//!         ◀── its pid, how it ended ──┘ ▲                              │ orphans
//!         ── closed: end the tree ──────┘◀─────────────────────────────┘
//! ```
//!
//! The keeper exits when nothing of the tree is left. When the control connection closes, it ends
//! the tree: the daemon has died or dropped the connection. Only Linux has keepers: elsewhere no
//! process can adopt orphans, and on Windows a Job holds the tree.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

/// Argument that makes this program a keeper; `main` calls [`run`] first.
pub const ARGUMENT: &str = "keep";
