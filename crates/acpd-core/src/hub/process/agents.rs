//! `_acpd/agent/*` and `_acpd/auth/done`: the methods that start and stop agents.

use acpd_api::{AuthSource, Reason, RestartParams};

use crate::clients::{Asked, Served};
use crate::hub::Hub;
use crate::params::read;
use crate::process::slot::{Asker, State, StopWhy};
use crate::record::{Desired, Dormant};

pub(crate) const STOPPED: &str = "stopped by a person";

impl Hub {
    pub(crate) fn agent_start(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&mut self.cx, &agent, Desired::Up);
        let slot = self.processes.shared(&agent, self.cx.now);
        self.need_agent(slot, Asker::Person)?;
        self.check_idle(slot);
        if self.processes[&slot].is_up() {
            self.answer_agent(to, slot);
        } else {
            self.processes.watch(slot, to.clone());
        }
        Ok(())
    }

    pub(crate) fn agent_stop(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&mut self.cx, &agent, Desired::Down);
        let shared = self.processes.shared(&agent, self.cx.now);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                self.take_back_steers(key);
            }
            self.begin_stop(slot, StopWhy::ByPerson, Some(STOPPED.to_owned()));
            if self.processes[&slot].host().is_none() {
                self.processes.refuse_waiters(&mut self.cx, slot, Reason::AgentStopped, true);
            }
        }
        if self.processes[&shared].host().is_some() {
            self.processes.may_start(shared)?;
            self.processes.watch(shared, to.clone());
        } else {
            self.answer_agent(to, shared);
        }
        Ok(())
    }

    pub(crate) fn agent_restart(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let agent = self.agent_ref(params)?;
        let RestartParams { force, .. } = read(params)?;
        for slot in self.processes.of_profile(&agent).into_iter().filter(|_| !force) {
            if self.processes[&slot].leftovers().is_some() {
                self.processes.may_start(slot)?;
            }
        }
        if self.processes.known(&agent).row.desired == Desired::Down {
            self.processes.set_desired(&mut self.cx, &agent, Desired::OnDemand);
        }
        // The user wants another try, and the agent may have the session again.
        self.processes.forget_lies(&mut self.cx, &agent);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                if self.session(key).row.rest == Dormant::Lost {
                    self.session_mut(key).row.edit().rest = Dormant::Failed;
                }
            }
            self.unblock_for_next(slot);
            if !self.processes.leave_behind(&mut self.cx, slot) {
                let reason = Some("restarted by a person".to_owned());
                self.begin_stop(slot, StopWhy::Restart, reason);
            }
        }
        self.route();
        // Slots with a process start again when it has ended.
        let shared = self.processes.shared(&agent, self.cx.now);
        let mut slots = self.processes.of_profile(&agent);
        // A dedicated slot starts only if something wants its process.
        slots.retain(|slot| {
            *slot != shared && self.processes.is_wanted(&self.cx, *slot, self.demand(*slot))
        });
        for slot in slots.into_iter().chain([shared]) {
            if self.processes[&slot].host().is_none() {
                self.need_agent(slot, Asker::Person)?;
            }
        }
        self.processes.watch(shared, to.clone());
        Ok(())
    }

    /// The user has logged in.
    pub(crate) fn auth_done(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let agent = self.agent_ref(params)?;
        self.login_found(&agent, AuthSource::Login);
        self.route();
        let slot = self.processes.shared(&agent, self.cx.now);
        let there = &self.processes[&slot];
        if there.state == State::Queued || (there.host().is_some() && !there.is_up()) {
            self.processes.may_start(slot)?;
            self.processes.watch(slot, to.clone());
        } else {
            self.answer_agent(to, slot);
        }
        Ok(())
    }
}
