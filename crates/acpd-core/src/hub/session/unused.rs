//! Sessions that nobody ever used. Editors make one with each new window, and most of these stay empty:
//! they are listed only to who made them or while somebody has them open, and after a day they are
//! deleted. Until then who knows the id can go on with one.

use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::input::Batch;
use crate::session::Session;
use crate::timers::Timer;

/// The time to the next look if one is older and still open, or may be open in a client that is away
/// (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    /// Whether a client is shown a session in a list.
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
        let unused = self.sessions.values().filter(|session| session.is_unused());
        if let Some(oldest) = unused.map(Session::kept_until).min() {
            self.timers.set(Timer::Unused, oldest.max(self.now.after(PAUSE)));
        }
    }

    /// Those that are over go, but not while somebody is away: it may have one of them open. What the
    /// agent keeps of them is left to it, as it may have been used without acpd.
    pub(crate) fn on_unused_timer(&mut self, out: &mut Batch) {
        if self.clients.are_awaited() {
            return self.watch_unused();
        }
        let is_over = |session: &Session| session.is_unused() && session.kept_until() <= self.now;
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
