use acp_wire::{ErrorObject, Id, Outcome, remove_member};
use acpd_api::Reason;
use bytes::Bytes;

use crate::auth::Refusal;
use crate::fault::{Fault, renewed_fault};
use crate::hub::Hub;
use crate::hub::session::adopt::last_prompt;
use crate::ids::{NOBODY, Process, Requester};
use crate::input::ReadStyle;
use crate::process::slot::Parked;
use crate::record::Used;
use crate::requests::purpose::{Adoption, Directory, NewSession};
use crate::session::restore::values_of;

impl Hub {
    pub(crate) fn adopted(
        &mut self,
        process: Process,
        adoption: &Adoption,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(process.slot, "session/load", &error) == Refusal::Renewed {
                    return self.refuse_adoption(adoption, &renewed_fault());
                }
                for opener in &adoption.openers {
                    let line = self.for_client(process.slot, &opener.to, line);
                    self.respond(&opener.to, None, line);
                }
                return;
            }
            Outcome::Result(result) => result,
        };
        if !self.claim_id(process.slot, &adoption.id) {
            let text = format!("the agent holds another session under the id `{}`", adoption.id);
            let fault = Fault::new(Reason::AgentProtocol, text);
            return self.refuse_adoption(adoption, &fault);
        }
        self.note_success(process.slot, "session/load");
        let new = NewSession {
            to: Requester { client: NOBODY, id: Id::null() },
            name: None,
            cwd: adoption.cwd.clone(),
            params: remove_member(&adoption.params, &["sessionId"]),
            notices: Vec::new(),
            directory: Directory::There,
            fork: None,
        };
        let profile = self.processes[&process.slot].profile().to_owned();
        let was_loaded = self.load_method(&profile, ReadStyle::History).is_some();
        let key = self.adopt_new(process.slot, &new, &adoption.id);
        // After a late replay the last prompt is unknown, so the next replay has no news.
        let late = self.profile_of(process.slot).late_replay;
        let parked = self.processes.parked(process.slot, &adoption.id).filter(|_| !late);
        let last_prompt = last_prompt(parked.map_or(&[], Parked::lines));
        let row = self.session_mut(key).row.edit();
        // Never create an adopted session again: the agent may have more of it than it has shown.
        row.heard = true;
        row.last_prompt = last_prompt;
        // Cost from before the adoption does not count.
        row.usage = Used::default();
        let (modes, options) = values_of(result);
        self.sessions.take_values(&mut self.cx, key, modes, options, true);
        self.deliver_parked(process, &adoption.id);
        let session = self.session_mut(key);
        // All turns are over, so no call is open.
        session.calls.clear();
        session.row.edit().open_tools.clear();
        if !was_loaded {
            let text = "what was said before acpd took the session over is not shown: the agent cannot load it";
            self.notice(key, "warning", text);
        }
        self.open_adopted(&adoption.openers, key);
        for text in &adoption.notices {
            self.notice(key, "warning", text);
        }
    }
}
