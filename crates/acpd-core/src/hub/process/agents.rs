//! `_acpd/agent/*`: the methods that start and stop agents.

use acpd_api::{Reason, RestartParams};

use crate::clients::{Asked, Served};
use crate::cx::Cx;
use crate::hub::Hub;
use crate::input::Batch;
use crate::params::read;
use crate::process::slot::{Asker, StopWhy};
use crate::record::{Desired, Dormant};

/// Why an agent is down that a person has stopped.
pub(crate) const STOPPED: &str = "stopped by a person";

impl Hub {
    pub(crate) fn agent_start(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&agent, Desired::Up, out);
        let slot = self.processes.shared(&agent, self.now);
        self.need_agent(slot, Asker::Person, out)?;
        self.check_idle(slot, out);
        if self.processes[&slot].is_up() {
            self.answer_agent(to, slot, out);
        } else {
            self.processes.watch(slot, to.clone());
        }
        Ok(())
    }

    pub(crate) fn agent_stop(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&agent, Desired::Down, out);
        let shared = self.processes.shared(&agent, self.now);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                self.take_back_steers(key, out);
            }
            self.begin_stop(slot, StopWhy::ByPerson, Some(STOPPED.to_owned()), out);
            if self.processes[&slot].host().is_none() {
                step!(self.processes.give_up(slot, Reason::AgentStopped), out);
            }
        }
        if self.processes[&shared].host().is_some() {
            self.processes.may_start(shared)?;
            self.processes.watch(shared, to.clone());
        } else {
            self.answer_agent(to, shared, out);
        }
        Ok(())
    }

    pub(crate) fn agent_restart(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        let RestartParams { force, .. } = read(params)?;
        for slot in self.processes.of_profile(&agent).into_iter().filter(|_| !force) {
            if self.processes[&slot].leftovers().is_some() {
                self.processes.may_start(slot)?;
            }
        }
        if self.processes.known(&agent).row.desired == Desired::Down {
            self.processes.set_desired(&agent, Desired::OnDemand, out);
        }
        let shared = self.processes.shared(&agent, self.now);
        // The user wants another try, and the agent may have the session again.
        self.processes.forget_lies(&agent, out);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                if self.session(key).row.rest == Dormant::Lost {
                    self.session_mut(key).row.edit().rest = Dormant::Failed;
                }
            }
            self.unblock_for_next(slot, out);
            if step!(self.processes.leave_behind(slot), out) {
                // Slots of single sessions go with them.
                if !self.processes.contains_key(&slot) {
                    continue;
                }
            } else {
                let reason = Some("restarted by a person".to_owned());
                self.begin_stop(slot, StopWhy::Restart, reason, out);
            }
            // A session without a process stays where it would not return by itself.
            if slot != shared
                && self.processes[&slot].host().is_none()
                && self.processes.is_wanted(slot, self.demand(slot))
            {
                self.need_agent(slot, Asker::Person, out)?;
            }
        }
        if self.processes[&shared].host().is_none() {
            self.need_agent(shared, Asker::Person, out)?;
        }
        self.processes.watch(shared, to.clone());
        Ok(())
    }
}
