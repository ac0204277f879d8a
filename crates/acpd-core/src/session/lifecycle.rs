//! The life of a session, and when it ends without a person.
//!
//! ```text
//!             archive
//!  active ◀────────────▶ archived
//!    │  ▲                    │
//!    │  │ undo               │ a person, or a limit of the configuration
//!    ├──┼────────────────────┴─▶ deleted: in no list, with a name that others may take
//!    │  └────────────────────────────┤
//!    │ unused for a day,             │ its time is over
//!    │ or closed and not kept        ▼
//!    └────────────────────────────▶ gone
//! ```
//!
//! Editors make a session per window, and most stay empty: these are unused. A client that has the id of one can use
//! it as long as it exists.
//!
//! Architecture invariant: an agent is asked to delete a session only when nothing can bring it back any more.

use crate::ids::Time;
use crate::session::{Session, State};

/// Lifetime of an unused session (ms).
const KEPT: u64 = 24 * 60 * 60_000;

impl Session {
    /// The session is empty, and has no name, title or archive state from a client.
    pub(crate) fn is_unused(&self) -> bool {
        let row = &self.row;
        let had_prompts = row.prompts > 0 || self.running.is_some() || !self.queue.is_empty();
        let had_words = row.heard || self.owes_summary();
        let is_wanted = row.name.is_some() || row.own_title.is_some() || row.archived;
        !had_prompts && !had_words && !is_wanted
    }

    /// When it is gone by itself. `is_kept`: its history stays when it is closed.
    pub(crate) fn gone_at(&self, is_kept: bool) -> Option<Time> {
        let is_left = matches!(self.state, State::Dormant) && self.queue.is_empty();
        if is_left && !is_kept {
            return Some(Time::default());
        }
        self.is_unused().then(|| self.row.created.after(KEPT))
    }
}

/// When a deleted session is gone: after the time for which it is kept (ms), and after twice that if the agent that has
/// to be told does not run.
pub(crate) fn deleted_gone_at(deleted: Time, keep: u64, waits_for_agent: bool) -> Time {
    deleted.after(if waits_for_agent { keep.saturating_mul(2) } else { keep })
}
