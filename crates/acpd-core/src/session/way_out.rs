//! What the agent has of a session, and advice for the user.

use acpd_api::RestoreLevel;

use crate::auth::login_hint;
use crate::fault::Fault;
use crate::record::Dormant;
use crate::session::{Session, State};

impl Session {
    pub(crate) fn way_out(&self) -> Option<String> {
        let row = &self.row;
        match (&self.state, row.rest) {
            (State::Live | State::Dormant, Dormant::NeedsLogin) => Some(login_hint(&row.agent)),
            (State::Live | State::Restoring(_), _)
            | (State::Dormant, Dormant::Parked | Dormant::Closed) => None,
            (State::Dormant, Dormant::Failed) if self.has_context() => Some(format!(
                "the next prompt tries again, and `acpctl session reseed {}` continues in a new \
                 session instead",
                row.word()
            )),
            (State::Dormant, Dormant::Failed) => Some("the next prompt tries again".to_owned()),
            (State::Dormant, Dormant::Lost) => Some(format!(
                "`acpctl session reseed {}` continues in a new session, `acpctl agent restart {}` \
                 looks for it once more",
                row.word(),
                row.agent
            )),
            (State::Dormant, Dormant::NoDirectory) => Some(format!(
                "put it back, or tell where it is: `acpctl session move {} --cwd DIR`",
                row.word()
            )),
        }
    }

    /// Returns whether the agent's new session lacks the conversation.
    pub(crate) fn owes_summary(&self) -> bool {
        self.row.restore == Some(RestoreLevel::Reseeded) && !self.row.heard
    }

    pub(crate) fn has_context(&self) -> bool {
        (self.row.prompts > 0 || self.row.heard) && !self.owes_summary()
    }

    pub(crate) fn still_has_it(&self) -> Fault {
        let row = &self.row;
        let (handle, word, agent) = (row.handle(), row.word(), &row.agent);
        let text =
            format!("agent `{agent}` may still have session `{handle}`: a new one knows less");
        let hint = format!(
            "the next prompt continues in it; to give it up all the same: \
             `acpctl session reseed {word} --discard`"
        );
        Fault::invalid(text).session(&row.public_id).hint(hint)
    }
}
