//! Processes and logins: one that does not start without, one login at a time, and expired
//! credentials.

use acp_wire::{ErrorObject, Id, build};
use acpd_api::{AuthSource, AuthState};
use serde_json::json;

use crate::auth::{changes_login, forget_credentials};
use crate::hub::Hub;
use crate::ids::{HostId, Requester, SessionKey, SlotId, Time};
use crate::input::Batch;
use crate::process::slot::{LoginRepeat, Slot, State, StopWhy, WaitFor, Waiting};
use crate::requests::purpose::Purpose;
use crate::session::turn::Queued;

fn is_login(waiting: &Waiting) -> bool {
    match &waiting.what {
        WaitFor::Relay { method, .. } => changes_login(method),
        WaitFor::Initialize | WaitFor::New(_) | WaitFor::Adopt(_) => false,
    }
}

impl Hub {
    /// An agent does not even answer `initialize` without a login. Its waiting requests fail; the
    /// next process comes with a login or the user's next prompt.
    pub(crate) fn start_wants_login(
        &mut self,
        slot: SlotId,
        source: AuthSource,
        error: &ErrorObject,
        out: &mut Batch,
    ) {
        let profile = self.processes[&slot].profile.clone();
        let is_news = !self.logins.state(&profile).wants_login();
        forget_credentials(&profile, out);
        self.login_is_wanted(&profile, source, out);
        if is_news {
            self.hook_login(slot, &error.message, out);
        }
        let fault = self.processes.login_fault(slot, &error.message);
        self.refuse_waiters(slot, &fault, out);
        for key in self.sessions.of_slot(slot) {
            if self.sessions.wants_host(key) {
                self.session_needs_login(key, error, out);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()), out);
    }

    /// Sets the lifetime of a process's credentials.
    pub(crate) fn on_credentials_good(&mut self, host: HostId, left: u64) {
        let Some(id) = self.processes.slot_of(host) else { return };
        let from = self.now.after(left);
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.stale_from = Some(from);
        }
    }

    /// Credentials aged while the machine was asleep.
    pub(crate) fn on_slept(&mut self, time: u64) {
        for host in self.processes.values_mut().filter_map(Slot::host_mut) {
            host.stale_from = host.stale_from.map(|from| Time(from.0.saturating_sub(time)));
        }
    }

    /// A process wants a login and has expired credentials: it is restarted with fresh ones, once
    /// until a prompt succeeds, unless it works. Returns whether it is; then no login is missing.
    pub(crate) fn renew_credentials(&mut self, slot: SlotId, out: &mut Batch) -> bool {
        let agent = &self.processes[&slot];
        if agent.renewed {
            return self.is_renewed(slot);
        }
        let stale_from = agent.host().and_then(|host| host.stale_from);
        let is_stale = stale_from.is_some_and(|from| from <= self.now);
        if !agent.is_up() || !is_stale || self.sessions.is_at_work(slot) {
            return false;
        }
        self.slot_mut(slot).renewed = true;
        for key in self.unblock(slot, out) {
            self.session_mut(key).eager = true;
        }
        let reason = Some("restarted with fresh credentials".to_owned());
        self.begin_stop(slot, StopWhy::Restart, reason, out);
        true
    }

    /// Returns whether a process stops to be restarted with fresh credentials.
    pub(crate) fn is_renewed(&self, slot: SlotId) -> bool {
        let agent = &self.processes[&slot];
        agent.renewed && matches!(agent.state, State::Stopping { why: StopWhy::Restart, .. })
    }

    /// Returns the method of the last login, if acpd may repeat it for this process: once, and only without a
    /// program that a person runs.
    pub(crate) fn login_to_repeat(&self, slot: SlotId) -> Option<String> {
        let agent = &self.processes[&slot];
        let is_untried = agent.host().is_some_and(|host| host.login == LoginRepeat::Untried);
        if !agent.is_up() || !is_untried || self.is_logging_in(slot) {
            return None;
        }
        let method = self.logins.get(&agent.profile)?.method.clone()?;
        let known = self.logins_of(&agent.profile);
        known.iter().any(|one| one.id == method && one.terminal.is_none()).then_some(method)
    }

    /// Returns whether acpd logs this process in again, so that what needs that has to wait.
    pub(crate) fn is_logged_in_again(&self, slot: SlotId) -> bool {
        self.processes[&slot].host().is_some_and(|host| host.login == LoginRepeat::Asked)
    }

    /// A process wants a login. Some want one in each process, although they keep it: the last one is
    /// repeated. Returns whether what was refused is to be asked again.
    pub(crate) fn log_in_again(&mut self, slot: SlotId, out: &mut Batch) -> bool {
        if self.is_logged_in_again(slot) {
            return true;
        }
        let Some(method) = self.login_to_repeat(slot) else { return false };
        let Some(host) = self.slot_mut(slot).host_mut() else { return false };
        host.login = LoginRepeat::Asked;
        let host = host.id;
        let ask = self.ask(host, Purpose::LoginAgain, out);
        let params = json!({ "methodId": method });
        self.processes.write(slot, build::request(&Id::issued(ask), "authenticate", &params), out);
        true
    }

    /// That login has ended. What waits for it goes on: if it did not work, the agent refuses it again. One
    /// that fails is not repeated, because it may open a window each time.
    pub(crate) fn logged_in_again(&mut self, slot: SlotId, worked: bool, out: &mut Batch) {
        if let Some(host) = self.slot_mut(slot).host_mut() {
            host.login = LoginRepeat::Over;
        }
        let profile = self.processes[&slot].profile.clone();
        if worked {
            self.set_auth(&profile, AuthState::Authenticated, AuthSource::Login, out);
            self.release(&profile, out);
        } else {
            self.logins.set_method(&profile, None, out);
        }
        if !self.processes[&slot].is_up() {
            return;
        }
        for key in self.sessions.of_slot(slot) {
            self.ask_step_again(key, out);
        }
        self.agent_usable(slot, out);
    }

    pub(crate) fn on_login_timer(&mut self, ask: u64, out: &mut Batch) {
        let host = self.requests.get(ask).map(|asked| asked.host);
        let Some(slot) = host.and_then(|host| self.processes.slot_of(host)) else { return };
        self.give_up_ask(ask, None, out);
        self.logged_in_again(slot, false, out);
    }

    /// A prompt was refused for want of a login that is being renewed. The agent has said nothing but that,
    /// so it gets the prompt again.
    pub(crate) fn prompt_again(&mut self, key: SessionKey, prompt: Queued, out: &mut Batch) {
        let text = if self.is_logged_in_again(self.session(key).slot) {
            "the agent's new process wants a login: acpd repeats the last one, and gives it the prompt again"
        } else {
            "the agent's login has run out: it is started anew with fresh credentials, and gets the prompt again"
        };
        self.notice(key, "warning", text, out);
        self.save_queued(key, &prompt, out);
        self.session_mut(key).queue.push_front(prompt);
    }

    /// Logins that waited for another one go on, one in each process.
    pub(crate) fn next_logins(&mut self, out: &mut Batch) {
        let up = self.processes.iter().filter(|(_, slot)| slot.is_up() && !slot.waiting.is_empty());
        for slot in up.map(|(id, _)| *id).collect::<Vec<_>>() {
            let waiting = &self.processes[&slot].waiting;
            if let Some(at) = waiting.iter().position(is_login)
                && !self.is_logging_in(slot)
            {
                let next = self.slot_mut(slot).waiting.remove(at);
                self.serve_waiting(slot, next, out);
            }
        }
    }

    /// Returns whether a login or logout of a connected client is under way in this process. One of
    /// a gone client may never end, and blocks no other.
    pub(crate) fn is_logging_in(&self, slot: SlotId) -> bool {
        let is_there = |to: &Requester| {
            self.clients.contains_key(&to.client) || self.clients.token_of(to.client).is_some()
        };
        let Some(host) = self.processes[&slot].usable_host() else { return false };
        self.requests.of_host(host).any(|why| match why {
            Purpose::Relay { to, method, .. } => changes_login(method) && is_there(to),
            _ => false,
        })
    }
}
