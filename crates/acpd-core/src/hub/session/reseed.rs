//! Continuing without the agent's conversation: with a summary in a new session.
//!
//! ```text
//!  lost ── no prompt waits ─▶ parked ── prompt ─▶ restored as ever, or lost again
//!    └──── a prompt waits ──▶ session/new ─▶ told ─▶ journal summed up ─▶ summary + prompt
//!  given up by the user ────▶ parked, a summary is owed ── prompt ─▶ session/new, as above
//!    (`session/reseed`; with `discard` also a live one, whose copy is closed)
//! ```
//!
//! A summary is owed while the restore level is `reseeded` and the agent has said nothing; both are
//! on disk with the session. If the process dies before, its copy is not restored, because nothing
//! is in it to lose.
//!
//! Architecture invariant: no agent continues with less than it had unless the conversation says so
//! before. Every state of a session or an agent that only the user ends names the command that ends
//! it, wherever it is reported; `docs/recovery.md` has the table.

use acpd_api::{Reason, ReseedParams, RestoreLevel, SessionInfo};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::record::Dormant;
use crate::session::State;
use crate::session::reseed::{Summary, promise};
use crate::session::restore::Step;
use crate::session::turn::wait_or_cancel;
use crate::timers::Timer;

/// Number of refused prompts in a row from which a notice shows the way out.
const REFUSALS: u32 = 2;

const GIVEN_UP: &str = "a person gave it up";

impl Hub {
    pub(crate) fn reseed(&mut self, key: SessionKey, reason: String) {
        let what = self.reseeds_with(key);
        let log = format!("session lost, continues with {}", what.name());
        self.log_not_restored(key, &log);
        let session = self.session_mut(key);
        session.summary = Summary::Unknown;
        if !session.queue.is_empty()
            && let State::Restoring(restore) = &mut session.state
        {
            restore.progress.level = RestoreLevel::Reseeded;
            restore.progress.step = Step::New;
            restore.reason = Some(reason);
            self.sessions.unroute(key);
            return self.ask_step(key, None);
        }
        let fault = Fault {
            message: format!("the session is lost: {reason}"),
            ..self.session(key).lost_fault()
        }
        .hint(format!("the next prompt continues in a new one, with {}", what.name()));
        self.refuse_relayed(key, &fault);
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

    /// Gives up the agent's copy: the next prompt continues in a new session, after a summary.
    pub(crate) fn session_reseed(&mut self, params: ReseedParams) -> Result<SessionInfo, Fault> {
        let ReseedParams { session, discard } = params;
        let key = self.resolve(&session)?;
        self.has_no_prompt(key)?;
        let session = self.session(key);
        if !session.has_context() {
            let text = format!("session `{}` has nothing to give up", session.row.handle());
            let hint = "the next prompt continues in a new one of the agent anyway";
            return Err(Fault::invalid(text).session(&session.row.public_id).hint(hint));
        }
        let is_stuck = session.is_dormant()
            && matches!(session.row.rest, Dormant::Failed | Dormant::Lost | Dormant::NoDirectory);
        if !is_stuck && !discard {
            return Err(self.session(key).still_has_it());
        }
        if !session.is_dormant() {
            self.close_session(key);
        }
        let what = self.reseeds_with(key);
        let session = self.session_mut(key);
        session.summary = Summary::Unknown;
        session.eager = false;
        let row = session.row.edit();
        row.restore = Some(RestoreLevel::Reseeded);
        row.heard = false;
        // These still wait for the directory or the login.
        if !matches!(row.rest, Dormant::NoDirectory | Dormant::NeedsLogin) {
            let had_failed = matches!(row.rest, Dormant::Failed | Dormant::Lost);
            let before = row.reason.take().filter(|_| had_failed);
            let before = before.map(|reason| format!(" ({reason})")).unwrap_or_default();
            row.rest = if row.archived { Dormant::Closed } else { Dormant::Parked };
            row.reason = Some(promise(&format!("{GIVEN_UP}{before}"), what));
        }
        self.tell_state(key);
        let text = format!(
            "the previous session is given up: the next prompt continues in a new one, with {}",
            what.name()
        );
        self.notice(key, "warning", &text);
        Ok(self.session_info(key))
    }

    pub(crate) fn has_no_prompt(&self, key: SessionKey) -> Result<(), Fault> {
        let session = self.session(key);
        if session.queue.is_empty() && !self.is_busy(key) {
            return Ok(());
        }
        let id = &session.row.public_id;
        let fault = Fault::new(Reason::SessionBlocked, "the session works on a prompt");
        Err(fault.session(id).hint(wait_or_cancel(id)))
    }
}
