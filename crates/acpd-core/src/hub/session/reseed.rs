//! Continuing without the agent's conversation: with a summary in a new session.
//!
//! ```text
//!  lost ── no prompt waits ─▶ parked ── prompt ─▶ restored as ever, or lost again
//!    └──── a prompt waits ──▶ session/new ─▶ told ─▶ journal summed up ─▶ summary + prompt
//!  given up by the user ────▶ parked, a summary is owed ── prompt ─▶ session/new, as above
//! ```
//!
//! A summary is owed while the restore level is `reseeded` and the agent has said nothing; both are
//! on disk with the session. If the process dies before, its copy is not restored, because nothing
//! is in it to lose.
//!
//! Architecture invariant: no agent continues with less than it had unless the conversation says so
//! before.

use acpd_api::RestoreLevel;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::record::Dormant;
use crate::session::State;
use crate::session::reseed::{Summary, promise};
use crate::timers::Timer;

/// Number of refused prompts in a row from which a notice shows the way out.
const REFUSALS: u32 = 2;

impl Hub {
    pub(crate) fn reseed(&mut self, key: SessionKey, reason: String) {
        let what = self.reseeds_with(key);
        let log = format!("session lost, continues with {}", what.name());
        self.log_not_restored(key, &log);
        let session = self.session_mut(key);
        session.summary = Summary::Unknown;
        if !session.queue.is_empty() && matches!(session.state, State::Restoring(_)) {
            return self.reseed_now(key, reason);
        }
        let waiting = std::mem::take(&mut session.waiting);
        let fault = Fault {
            message: format!("the session is lost: {reason}"),
            ..self.sessions.lost_fault(key)
        }
        .hint(format!("the next prompt continues in a new one, with {}", what.name()));
        for relayed in waiting {
            self.refuse(&relayed.to, &fault);
        }
        self.cx.timers.clear(Timer::Restore(key));
        self.make_dormant(key, Dormant::Parked, Some(promise(&reason, what)));
        self.session_mut(key).eager = false;
        self.check_idle(self.session(key).slot);
    }

    /// An agent that has restored a session and refuses each prompt in it may never work again.
    pub(crate) fn note_refused(&mut self, key: SessionKey, is_refused: bool) {
        let session = self.session_mut(key);
        session.refusals = if is_refused { session.refusals + 1 } else { 0 };
        let times = session.refusals;
        let is_back = matches!(
            session.row.restore,
            Some(RestoreLevel::Loaded | RestoreLevel::Partial | RestoreLevel::Resumed)
        );
        if times >= REFUSALS && is_back {
            let text = format!(
                "the agent has refused {times} prompts in a row since it brought the session back; \
                 `acpctl session reseed {} --discard` continues with {}",
                session.row.word(),
                self.reseeds_with(key).name()
            );
            self.notice(key, "warning", &text);
        }
    }

    pub(crate) fn on_summary(&mut self, key: SessionKey, text: String) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        if session.summary == Summary::Asked {
            session.summary = Summary::Known(text);
            self.wake_session(key);
        }
    }
}
