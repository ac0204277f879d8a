//! Unused sessions. Editors make one per window, and most stay empty: they are listed only to their
//! maker or while a client has them open, and deleted after a day. Until then a client with the id
//! can use one.
//!
//! And sessions whose conversations are not kept (`persist_history`):
//!
//! ```text
//!           ┌── closed ───────────────────────────────────────────────────────────┐
//!  in use ──┤                                                                     ▼
//!     ▲     └── no process, no client, nothing waits ── the next look finds it ─▶ deleted for good
//!     └── restored, or prompted again ───┘
//! ```

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::input::Batch;
use crate::session::{Session, State};
use crate::timers::Timer;

/// The time to the next look if one is older and still open, or may be open in a client that is away
/// (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    /// Returns whether a conversation stays when its session is closed.
    pub(crate) fn keeps_history(&self, key: SessionKey) -> bool {
        self.profile_of(self.session(key).slot).persist_history
    }

    /// Deletes a session that was just closed, if its conversation is not kept. What the agent keeps of it is left to
    /// the agent.
    pub(crate) fn forget_unless_kept(&mut self, key: SessionKey, out: &mut Batch) {
        if !self.keeps_history(key) {
            self.forget_session(key, "session/close", out);
        }
    }

    /// Refuses to put away what is not kept.
    pub(crate) fn can_archive(&self, key: SessionKey) -> Result<(), Fault> {
        if self.keeps_history(key) {
            return Ok(());
        }
        let row = &self.session(key).row;
        let text = format!("conversations of agent `{}` are not kept", row.agent);
        let fault = Fault::invalid(text).session(&row.public_id);
        Err(fault.hint("`persist_history = false` of the configuration says so; close the session to delete it"))
    }

    /// Returns whether a list for this client has the session.
    pub(crate) fn lists(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        let is_its_own = || self.clients.get(&client).is_some_and(|of| of.made.contains(&key));
        !session.is_unused() || !session.attached.is_empty() || is_its_own()
    }

    /// Looks when the oldest of them is to go. A look that is to come stands: it is early enough for
    /// those that are made before it, and does not move away with each of them.
    pub(crate) fn watch_unused(&mut self) {
        if self.timers.is_set(Timer::Unused) {
            return;
        }
        let goes = |session: &Session| {
            if self.profile_of(session.slot).persist_history {
                session.is_unused().then(|| session.kept_until())
            } else {
                Some(self.now)
            }
        };
        if let Some(oldest) = self.sessions.values().filter_map(goes).min() {
            self.timers.set(Timer::Unused, oldest.max(self.now.after(PAUSE)));
        }
    }

    /// Old ones are deleted, but not while a client is away that may have one open. The agent keeps
    /// its copy, which may have been used without acpd.
    pub(crate) fn on_unused_timer(&mut self, out: &mut Batch) {
        if self.clients.are_awaited() {
            return self.watch_unused();
        }
        let is_left = |session: &Session| {
            matches!(session.state, State::Dormant)
                && session.queue.is_empty()
                && !self.profile_of(session.slot).persist_history
        };
        let is_over = |session: &Session| {
            session.is_unused() && session.kept_until() <= self.now || is_left(session)
        };
        let over = self.sessions.iter().filter(|(_, session)| is_over(session));
        let over: Vec<SessionKey> = over.map(|(key, _)| *key).collect();
        for key in over {
            if !self.is_in_use(key) {
                self.forget_session(key, "session/close", out);
            }
        }
        self.watch_unused();
    }
}
