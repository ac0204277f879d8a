//! Ways out of states that only the user ends, and giving up the agent's copy of a session.
//!
//! ```text
//!  blocked, lost ── session/reseed ─▶ parked, a summary is owed ── prompt ─▶ session/new ─▶ live
//!  live, parked, closed ── the same with `discard`: the agent's copy is closed ─▶ ┘
//! ```
//!
//! Architecture invariant: every state of a session or an agent that only the user ends names the
//! command that ends it, wherever it is reported; `docs/recovery.md` has the table.

use acpd_api::{Reason, ReseedParams, RestoreLevel};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::params::read;
use crate::record::Dormant;
use crate::session::State;
use crate::session::reseed::{Summary, promise};
use crate::session::turn::wait_or_cancel;

const GIVEN_UP: &str = "a person gave it up";

impl Hub {
    /// Gives up the agent's copy: the next prompt continues in a new session, after a summary.
    pub(crate) fn session_reseed(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let ReseedParams { session, discard } = read(params)?;
        let key = self.resolve(&session)?;
        self.has_no_prompt(key)?;
        let session = self.session(key);
        if !session.has_context() {
            let text = format!("session `{}` has nothing to give up", session.row.handle());
            let hint = "the next prompt continues in a new one of the agent anyway";
            return Err(Fault::invalid(text).session(&session.row.public_id).hint(hint));
        }
        let is_stuck = matches!(session.state, State::Dormant)
            && matches!(session.row.rest, Dormant::Failed | Dormant::Lost | Dormant::NoDirectory);
        if !is_stuck && !discard {
            return Err(self.session(key).still_has_it());
        }
        if !matches!(session.state, State::Dormant) {
            self.close_session(key);
        }
        self.give_up_context(key);
        let info = self.session_info(key);
        self.answer(to, &info);
        Ok(())
    }

    fn give_up_context(&mut self, key: SessionKey) {
        let what = self.reseeds_with(key);
        let session = self.session_mut(key);
        session.summary = Summary::Unknown;
        session.eager = false;
        let row = session.row.edit();
        row.restore = Some(RestoreLevel::Reseeded);
        row.heard = false;
        let before = match row.rest {
            // The session still waits for the directory or the login.
            Dormant::NoDirectory | Dormant::NeedsLogin => None,
            Dormant::Failed | Dormant::Lost => Some(row.reason.take()),
            Dormant::Parked | Dormant::Closed => Some(None),
        };
        if let Some(before) = before {
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
    }

    pub(crate) fn has_no_prompt(&self, key: SessionKey) -> Result<(), Fault> {
        let session = self.session(key);
        let row = &session.row;
        let works = session.running.is_some()
            || !session.queue.is_empty()
            || self.works_on(session.slot, &row.agent_id);
        if !works {
            return Ok(());
        }
        Err(Fault::new(Reason::SessionBlocked, "the session works on a prompt")
            .session(&row.public_id)
            .hint(wait_or_cancel(&row.public_id)))
    }
}
