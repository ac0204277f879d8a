//! Sessions that nobody ever used. Editors make one with each new window, and most of these stay empty:
//! they are listed only to who made them or while somebody has them open, and after a day they are
//! deleted. Until then who knows the id can go on with one.

use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey, Time};
use crate::input::Batch;
use crate::session::Session;
use crate::timers::Timer;

/// How long a session that nobody uses is kept (ms).
const KEPT: u64 = 24 * 60 * 60_000;
/// The time to the next look if one is older and still open, or clients of the last daemon may come
/// back to it (ms).
const PAUSE: u64 = 10 * 60_000;

impl Session {
    /// There is nothing in it, and nobody has given it a name.
    fn is_unused(&self) -> bool {
        let row = &self.row;
        let had_prompts = row.prompts > 0 || self.running.is_some() || !self.queue.is_empty();
        !had_prompts && !row.heard && row.name.is_none()
    }

    fn kept_until(&self) -> Time {
        self.row.created.after(KEPT)
    }
}

impl Hub {
    /// Whether a client is shown a session in a list.
    pub(crate) fn lists(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        let is_its_own = || self.clients.get(&client).is_some_and(|of| of.made.contains(&key));
        !session.is_unused() || !session.attached.is_empty() || is_its_own()
    }

    /// Looks again when the oldest of them is to go.
    pub(crate) fn watch_unused(&mut self) {
        let unused = self.sessions.values().filter(|session| session.is_unused());
        if let Some(oldest) = unused.map(Session::kept_until).min() {
            self.timers.set(Timer::Unused, oldest.max(self.now.after(PAUSE)));
        }
    }

    pub(crate) fn on_unused_timer(&mut self, out: &mut Batch) {
        let is_over = |session: &Session| session.is_unused() && session.kept_until() <= self.now;
        let over = self.sessions.iter().filter(|(_, session)| is_over(session));
        let over: Vec<SessionKey> = over.map(|(key, _)| *key).collect();
        for key in over {
            if !self.is_in_use(key) {
                self.delete_session(key, out);
            }
        }
        self.watch_unused();
    }
}
