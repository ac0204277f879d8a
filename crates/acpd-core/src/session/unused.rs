//! The use of a session, and the lifetime of unused ones.

use crate::ids::Time;
use crate::session::Session;

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

    pub(crate) fn kept_until(&self) -> Time {
        self.row.created.after(KEPT)
    }
}
