//! Requests of clients that an agent serves: now, or when it is up.

use acp_wire::{Id, build, locate, set_id};
use acpd_api::Reason;

use crate::auth::changes_login;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId};
use crate::input::Batch;
use crate::mcp::put_names;
use crate::params::raw;
use crate::process::slot::{Asker, WaitFor, Waiting};
use crate::requests::purpose::{Directory, Purpose};
use crate::session::Relayed;

impl Hub {
    /// Serves a request now if the agent is usable, or when it is.
    pub(crate) fn with_agent(
        &mut self,
        slot: SlotId,
        waiting: Waiting,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        self.need_agent(slot, Asker::Person, out)?;
        if self.processes[&slot].is_up() {
            self.serve_waiting(slot, waiting, out);
        } else {
            self.processes.wait(slot, waiting);
        }
        Ok(())
    }

    pub(crate) fn serve_waiting(&mut self, slot: SlotId, waiting: Waiting, out: &mut Batch) {
        let Waiting { to, what } = waiting;
        if !self.clients.contains_key(&to.client) {
            return;
        }
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&to, &self.agent_fault(slot, Reason::AgentExited), out);
        };
        if self.processes.is_clogged(slot) {
            let fault = self.processes.clogged_fault(slot);
            return self.refuse(&to, &fault, out);
        }
        match what {
            WaitFor::Initialize => {
                let profile = self.processes[&slot].profile().to_owned();
                self.send_initialized(&to, &profile, out);
            }
            WaitFor::New(ref new) if new.directory != Directory::There => {
                self.find_directory_for(slot, Waiting { to, what }, out);
            }
            WaitFor::New(new) if new.fork.is_some() => self.ask_for_fork(slot, new, out),
            WaitFor::New(mut new) => {
                let (params, notices) = (&mut new.params, &mut new.notices);
                let (servers, params) =
                    self.gather_servers(slot, to.client, &new.cwd, params, notices);
                let ask = self.ask(host, Purpose::NewSession(new), out);
                let line = build::request(&Id::issued(ask), "session/new", &raw(&params));
                self.processes.write_named(slot, put_names(&line, &servers), out);
            }
            WaitFor::Adopt(adoption) => self.begin_adoption(slot, adoption, out),
            WaitFor::Relay { ref method, .. }
                if changes_login(method) && self.is_logging_in(slot) =>
            {
                self.processes.wait(slot, Waiting { to, what });
            }
            WaitFor::Relay { method, line } => {
                let params = locate(&line, &["params"]).filter(|_| method == "authenticate");
                let params = params.map(|range| line.slice(range));
                let why = Purpose::Relay { to, session: None, method, params };
                let ask = self.ask(host, why, out);
                self.processes.write(slot, set_id(&line, &Id::issued(ask)), out);
            }
        }
    }

    /// Gives a client's request about a live session to the agent.
    pub(crate) fn relay(&mut self, key: SessionKey, relayed: Relayed, out: &mut Batch) {
        let Relayed { to, method, line } = relayed;
        if method == "session/fork" {
            return self.begin_fork(key, to, &line, out);
        }
        let slot = self.session(key).slot;
        if self.processes.is_clogged(slot) {
            let fault = self.processes.clogged_fault(slot);
            return self.refuse(&to, &fault, out);
        }
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&to, &self.agent_fault(slot, Reason::AgentExited), out);
        };
        let params = locate(&line, &["params"]).map(|range| line.slice(range));
        let why = Purpose::Relay { to, session: Some(key), method, params };
        let ask = self.ask(host, why, out);
        let line = self.sessions.to_agent_id(key, set_id(&line, &Id::issued(ask)));
        self.processes.write(slot, line, out);
    }

    /// Takes a request out of what waits for an agent or for a session; whether it was there.
    pub(crate) fn forget_waiting(&mut self, to: &Requester) -> bool {
        if self.processes.forget_waiting(to) || self.clients.forget_naming(to) {
            return true;
        }
        let sessions = self.sessions.values_mut();
        sessions.flat_map(|session| session.waiting.extract_if(.., |w| w.to == *to)).count() > 0
    }
}
