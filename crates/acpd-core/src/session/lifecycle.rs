//! Life of a session, and its automatic end.
//!
//! ```text
//!             archive
//!  active ◀────────────▶ archived
//!    │  ▲                    │
//!    │  │ undo               │ the user, or a configured limit
//!    ├──┼────────────────────┴─▶ deleted: in no list, and the name is free
//!    │  └────────────────────────────┤
//!    │ unused for a day,             │ time for undo is over
//!    │ or closed and not kept        ▼
//!    └────────────────────────────▶ gone
//! ```
//!
//! Editors make a session per window, and most stay empty: these are unused. A client with the id
//! of an unused session can still use it.
//!
//! Architecture invariant: acpd asks an agent to delete a session only when nothing can restore it.

use crate::ids::Time;
use crate::session::{Session, State};

/// Lifetime of an unused session (ms).
const KEPT: u64 = 24 * 60 * 60_000;

impl Session {
    /// Returns whether nothing was said, and no client has named, titled or archived the session.
    pub(crate) fn is_unused(&self) -> bool {
        let row = &self.row;
        let had_prompts = row.prompts > 0 || self.running.is_some() || !self.queue.is_empty();
        let had_words = row.heard || self.owes_summary();
        let is_wanted = row.name.is_some() || row.own_title.is_some() || row.archived;
        !had_prompts && !had_words && !is_wanted
    }

    /// `is_kept`: the history survives the close of the session.
    pub(crate) fn gone_at(&self, is_kept: bool) -> Option<Time> {
        let is_left = matches!(self.state, State::Dormant) && self.queue.is_empty();
        if is_left && !is_kept {
            return Some(Time::default());
        }
        self.is_unused().then(|| self.row.created.after(KEPT))
    }
}

/// Adds `keep` (ms), or twice that if the agent must delete the session and does not run.
pub(crate) fn deleted_gone_at(deleted: Time, keep: u64, waits_for_agent: bool) -> Time {
    deleted.after(if waits_for_agent { keep.saturating_mul(2) } else { keep })
}
