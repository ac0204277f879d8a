//! What a login has to do with processes: one that does not start without, and one login at a time.

use acp_wire::ErrorObject;
use acpd_api::AuthSource;

use crate::agent::{AgentId, StopWhy, WaitFor};
use crate::hub::Hub;
use crate::input::Batch;
use crate::ledger::{Requester, Why};

/// Whether a method changes the login of a whole process.
pub(crate) fn changes_login(method: &str) -> bool {
    matches!(method, "authenticate" | "logout")
}

impl Hub {
    /// An agent does not even answer `initialize` without a login. Nobody waits for it any more: its
    /// next process comes with a login, or with a person's next prompt.
    pub(crate) fn start_wants_login(
        &mut self,
        slot: AgentId,
        source: AuthSource,
        error: &ErrorObject,
        out: &mut Batch,
    ) {
        let profile = self.agents[&slot].profile.clone();
        let is_news = !self.auth_state(&profile).wants_login();
        self.login_is_wanted(&profile, source, out);
        if is_news {
            self.hook_login(slot, &error.message, out);
        }
        let fault = self.login_fault(slot, &error.message);
        for requester in std::mem::take(&mut self.agent_mut(slot).watchers) {
            self.refuse(&requester, &fault, out);
        }
        for waiting in std::mem::take(&mut self.agent_mut(slot).waiting) {
            self.refuse(&waiting.to, &fault, out);
        }
        for key in self.sessions_of(slot) {
            if self.wants_host(key) {
                self.session_needs_login(key, error, out);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()), out);
    }

    /// Logins that waited for another one go on, one in each process.
    pub(crate) fn next_logins(&mut self, out: &mut Batch) {
        let up = self.agents.iter().filter(|(_, slot)| slot.is_up() && !slot.waiting.is_empty());
        for slot in up.map(|(id, _)| *id).collect::<Vec<_>>() {
            let is_login = |what: &WaitFor| matches!(what, WaitFor::Relay { method, .. } if changes_login(method));
            let waiting = &self.agents[&slot].waiting;
            if let Some(at) = waiting.iter().position(|waiting| is_login(&waiting.what))
                && !self.is_logging_in(slot)
            {
                let next = self.agent_mut(slot).waiting.remove(at);
                self.serve_waiting(slot, next, out);
            }
        }
    }

    /// Whether a login or a logout is under way in this process for somebody. One whose client has
    /// gone may never end, and keeps nobody else waiting.
    pub(crate) fn is_logging_in(&self, slot: AgentId) -> bool {
        let is_there = |to: &Requester| {
            self.clients.contains_key(&to.client) || self.token_of(to.client).is_some()
        };
        let Some(host) = self.agents[&slot].usable_host() else { return false };
        self.ledger.of_host(host).any(|why| match why {
            Why::Relay { to, method, .. } => changes_login(method) && is_there(to),
            _ => false,
        })
    }
}
