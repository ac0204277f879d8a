//! Turns that failed at the model's provider although their agents report a normal end.

use acpd_api::Reason;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::session::Session;
use crate::tool_calls::call::update_in;

impl Hub {
    pub(crate) fn note_failure(&mut self, key: SessionKey, line: &[u8]) {
        let slot = self.session(key).slot;
        if self.profile_of(slot).failed_turn.is_empty() {
            return;
        }
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let mut failure = std::mem::take(&mut running.failure);
        failure.note(&self.profile_of(slot).failed_turn, update_in(line));
        if let Some(running) = self.session_mut(key).running.as_mut() {
            running.failure = failure;
        }
    }

    pub(super) fn failed_turn_fault(
        &self,
        key: SessionKey,
        stop_reason: &str,
        result: &str,
    ) -> Option<Fault> {
        let Session { slot, running, row, .. } = self.session(key);
        let profile = self.profile_of(*slot);
        let running = running.as_ref()?;
        let text = running.failure.reported(&profile.failed_turn, result.as_bytes())?;
        let is_own_end = stop_reason != "cancelled" && !running.work.is_cancelled();
        is_own_end.then(|| {
            let text = match text {
                "" => "the model failed, and the agent did not say why".to_owned(),
                text => format!("the turn failed: {text}"),
            };
            Fault::new(Reason::FailedTurn, text).session(&row.public_id).hint(format!(
                "check its login and its model provider; its output is in `{}`",
                profile.log
            ))
        })
    }

    /// Some agents end a turn without output if their provider refuses it (`empty_turn_fails`).
    pub(super) fn empty_turn_fault(&self, key: SessionKey, stop_reason: &str) -> Option<Fault> {
        let Session { slot, running, row, .. } = self.session(key);
        let profile = self.profile_of(*slot);
        let running = running.as_ref()?;
        let is_one =
            stop_reason == "end_turn" && !running.work.is_touched() && !running.work.is_cancelled();
        (is_one && profile.empty_turn_fails).then(|| {
            let text = "the agent ended the turn without a word, as it does when its model fails";
            Fault::new(Reason::EmptyTurn, text).session(&row.public_id).hint(format!(
                "check its login and its model provider; its output is in `{}`",
                profile.log
            ))
        })
    }
}
