//! Answers to everything that waits for a process that is lost or will not start.

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{HostId, SlotId};
use crate::mcp::client_servers::CallEnd;
use crate::process::slot::{WaitFor, Waiting};
use crate::record::purpose::Purpose;

impl Hub {
    pub(crate) fn process_lost(
        &mut self,
        (id, host): (SlotId, HostId),
        fault: &Fault,
        ended_late: bool,
    ) {
        for why in self.drop_requests_of(host) {
            match why {
                Purpose::Steer(steer) => self.steer_lost(&steer, fault),
                why => self.refuse_askers(id, why, fault),
            }
        }
        let asked =
            self.questions.which(|open| open.host() == Some(host) && open.session().is_none());
        self.close_questions(asked);
        self.services.on_process_gone(&mut self.cx, host);
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::ProcessGone(host));
        let sessions = self.sessions.of_slot(id);
        let mut cut_off = sessions.clone();
        cut_off.retain(|key| ended_late && self.session(*key).is_at_agent());
        for key in sessions {
            self.session_lost_host(key, fault);
        }
        for key in &cut_off {
            self.load_cut_off(*key, cut_off.len() == 1);
        }
    }

    /// Refuses the clients that wait for a request without an answer, except those of a message to
    /// a turn.
    pub(crate) fn refuse_askers(&mut self, slot: SlotId, why: Purpose, fault: &Fault) {
        match why {
            Purpose::Relay { to, .. } => self.refuse(&to, fault),
            Purpose::NewSession(new) => self.refuse(&new.to, fault),
            Purpose::Adopt(adoption) => self.refuse_adoption(&adoption, fault),
            Purpose::List { to, wanted } => self.listed(slot, &to, &wanted, None),
            _ => {}
        }
    }

    pub(crate) fn fail_waiters(&mut self, id: SlotId, fault: &Fault) {
        self.refuse_waiters(id, fault);
        let for_good = self.processes.stays_down(&self.cx, id);
        for key in self.sessions.of_slot(id) {
            // Prompts that wait for a login do not need a process until then.
            if for_good || !self.session(key).waits_for_login() {
                self.fail_queue(key, fault);
            } else {
                self.refuse_relayed(key, fault);
            }
        }
    }

    /// Refuses the requests that wait for the process, except `initialize` if its result is known.
    pub(crate) fn refuse_waiters(&mut self, id: SlotId, fault: &Fault) {
        let profile = self.processes[&id].profile().to_owned();
        let watchers = self.processes.take_watchers(id);
        let waiting = self.processes.take_waiting(id);
        for requester in watchers {
            self.refuse(&requester, fault);
        }
        for Waiting { to, what } in waiting {
            let is_first = matches!(what, WaitFor::Initialize);
            if !(is_first && self.initialize_from_memory(&to, &profile)) {
                self.refuse(&to, fault);
            }
        }
    }
}
