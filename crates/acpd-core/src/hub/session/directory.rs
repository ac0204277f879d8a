//! The directory of a session: acpd looks for it before it asks an agent, and a user can change it.
//!
//! Many agents accept a missing directory, or create it; others refuse it in their own words. The
//! hub knows no files: it asks (`Effect::FindDirectory`) and continues with the answer.

use acp_wire::set_member;
use acpd_api::{MoveParams, Reason, SessionInfo};
use serde_json::json;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::params::workspace;
use crate::process::slot::{Asker, Directory};
use crate::record::Dormant;
use crate::session::Session;
use crate::session::restore::Step;
use crate::timers::Timer;

impl Hub {
    pub(crate) fn on_directory_found(&mut self, question: u64, exists: bool) {
        let step = Step::Directory(question);
        let waits = |session: &Session| session.restore().is_some_and(|of| of.step() == step);
        let restoring = self.sessions.awake().find(|(_, session)| waits(session));
        if let Some(key) = restoring.map(|(key, _)| key) {
            self.cx.timers.clear(Timer::Restore(key));
            if exists {
                return self.restore_there(key);
            }
            let row = &self.session(key).row;
            let fault = missing(&row.cwd).session(&row.public_id);
            self.make_dormant(key, Dormant::NoDirectory, Some(fault.message.clone()));
            let session = self.session(key);
            let (slot, hint) = (session.slot, session.way_out().unwrap_or_default());
            self.fail_queue(key, &fault.hint(hint));
            return self.check_idle(slot);
        }
        let found = self.processes.take_waiting_for(question);
        let Some((slot, mut waiting)) = found else { return };
        if exists {
            waiting.directory = Directory::There;
            if self.processes[&slot].is_up() {
                self.serve_waiting(slot, waiting);
            } else if let Err(fault) = self.processes.may_start(slot) {
                self.refuse(&waiting.to, &fault);
            } else {
                // The process has begun to stop meanwhile; the next one continues.
                self.processes.wait(slot, waiting);
            }
        } else {
            let cwd = waiting.what.cwd().unwrap_or_default();
            let fault = missing(cwd).hint("make it, or choose another directory");
            self.refuse(&waiting.to, &fault);
            self.check_idle(slot);
        }
    }

    pub(crate) fn session_move(&mut self, params: MoveParams) -> Result<SessionInfo, Fault> {
        let key = self.resolve(&params.session)?;
        let cwd = workspace(&params.cwd)?.to_owned();
        self.has_no_prompt(key)?;
        let session = self.session(key);
        let row = &session.row;
        if let Some(name) = &row.name {
            let free = self.name_is_free(&row.agent, &cwd, name, Some(key));
            free.map_err(|fault| fault.hint("rename one of them: `acpctl session rename`"))?;
        }
        if !session.is_dormant() {
            // The agent's copy works in the old directory.
            self.close_session(key);
        }
        let row = self.session_mut(key).row.edit();
        row.params = set_member(&row.params, &["cwd"], json!(cwd).to_string().as_bytes());
        row.cwd = cwd;
        // An archived session stays closed.
        if matches!(row.rest, Dormant::NoDirectory | Dormant::Closed) && !row.archived {
            row.rest = Dormant::Parked;
            row.reason = None;
        }
        let is_attached = self.clients.is_attended(key);
        self.tell_state(key);
        if is_attached && self.session(key).row.rest == Dormant::Parked {
            self.session_mut(key).eager = true;
            self.need_session(key, Asker::Policy);
        }
        Ok(self.session_info(key))
    }
}

fn missing(cwd: &str) -> Fault {
    Fault::new(Reason::CwdMissing, format!("the directory `{cwd}` does not exist"))
}
