//! Background work of agents of version 2.
//!
//! Architecture invariant: the list is on disk, because an agent tells it again only when it changes,
//! and it is empty when the process is gone.

use acp_wire::bound::SENTENCE;
use acp_wire::clipped;
use acp_wire::dialect::{BackgroundWork, WorkKind};
use serde_json::json;

use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::record::Purpose;

impl Hub {
    pub(crate) fn background_told(
        &mut self,
        slot: SlotId,
        agent_id: &str,
        work: Vec<BackgroundWork>,
    ) {
        let Some(key) = self.sessions.routed(slot, agent_id) else { return };
        // The work of a subagent is its own.
        let row = &self.session(key).row;
        if row.agent_id == agent_id && (!row.lists_background || row.background != work) {
            let row = self.session_mut(key).row.edit();
            row.lists_background = true;
            row.background = work;
            self.lease(slot);
            self.check_idle(slot);
        }
    }

    /// Asks the agent to end what can be ended alone. Returns the number of requests.
    pub(crate) fn end_work(&mut self, key: SessionKey) -> u32 {
        let (slot, row) = (self.session(key).slot, &self.session(key).row);
        let (session, work) = (row.agent_id.clone(), row.background.clone());
        let mut asked = 0;
        for BackgroundWork { kind, id, .. } in work.iter().filter(|work| work.can_be_cancelled) {
            let (method, member) = kind.cancel();
            if *kind == WorkKind::Subagent {
                let line = acp_wire::build::notification(method, &json!({ member: id }));
                self.processes.notify(&mut self.cx, slot, line);
            } else {
                let params = json!({ "sessionId": session, member: id });
                self.request(slot, Purpose::EndWork { session: key }, method, &params);
            }
            asked += 1;
        }
        asked
    }

    /// The process is gone, or no longer holds the session.
    pub(crate) fn end_background(&mut self, key: SessionKey) {
        if self.session(key).row.background.is_empty() {
            return;
        }
        let work = std::mem::take(&mut self.session_mut(key).row.edit().background);
        let names = work.iter().map(BackgroundWork::name).collect::<Vec<_>>().join(", ");
        let text = format!("work in the background ended with the agent: {names}");
        self.notice(key, "warning", &clipped(&text, SENTENCE));
        self.clients.tell_turn_state(&mut self.cx, self.sessions[&key].journal());
    }
}
