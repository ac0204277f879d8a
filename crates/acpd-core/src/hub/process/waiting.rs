//! Requests of clients that wait for an agent.

use acp_wire::{Id, locate, set_id};
use acpd_api::Reason;

use crate::auth::changes_login;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SlotId};
use crate::params::raw;
use crate::process::slot::{Asker, WaitFor, Waiting};
use crate::record::purpose::{Directory, Purpose};

impl Hub {
    pub(crate) fn with_agent(&mut self, slot: SlotId, waiting: Waiting) -> Result<(), Fault> {
        self.need_agent(slot, Asker::Person)?;
        if self.processes[&slot].is_up() {
            self.serve_waiting(slot, waiting);
        } else {
            self.processes.wait(slot, waiting);
        }
        Ok(())
    }

    pub(crate) fn serve_waiting(&mut self, slot: SlotId, waiting: Waiting) {
        let Waiting { to, what } = waiting;
        if !self.clients.contains_key(&to.client) {
            return;
        }
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&to, &self.agent_fault(slot, Reason::AgentExited));
        };
        if self.processes.is_clogged(slot) {
            let fault = self.processes.clogged_fault(slot);
            return self.refuse(&to, &fault);
        }
        match what {
            WaitFor::Initialize => {
                let profile = self.processes[&slot].profile().to_owned();
                self.send_initialized(&to, &profile);
            }
            WaitFor::New(ref new) if new.directory != Directory::There => {
                self.find_directory_for(slot, Waiting { to, what });
            }
            WaitFor::New(new) if new.fork.is_some() => self.ask_for_fork(slot, new),
            WaitFor::New(mut new) => {
                let (params, notices) = (&mut new.params, &mut new.notices);
                let (servers, params) =
                    self.gather_servers(slot, to.client, &new.cwd, params, notices);
                let why = Purpose::NewSession(new);
                self.request_with(slot, why, "session/new", &raw(&params), &servers);
            }
            WaitFor::Adopt(adoption) => self.begin_adoption(slot, adoption),
            WaitFor::Relay { ref method, .. }
                if changes_login(method) && self.is_logging_in(slot) =>
            {
                self.processes.wait(slot, Waiting { to, what });
            }
            WaitFor::Relay { method, line } => {
                let params = locate(&line, &["params"]).filter(|_| method == "authenticate");
                let params = params.map(|range| String::from_utf8_lossy(&line[range]).into_owned());
                let why = Purpose::Relay { to, session: None, method, params };
                let ask = self.ask(host, why);
                self.processes.write(&mut self.cx, slot, set_id(&line, &Id::issued(ask)));
            }
        }
    }

    /// Returns whether the request was waiting for an agent or a session.
    pub(crate) fn forget_waiting(&mut self, to: &Requester) -> bool {
        let naming = self.naming.extract_if(.., |wait| wait.to == *to);
        if naming.count() > 0 || self.processes.forget_waiting(to) {
            return true;
        }
        let sessions = self.sessions.values_mut();
        sessions.flat_map(|session| session.waiting.extract_if(.., |w| w.to == *to)).count() > 0
    }
}
