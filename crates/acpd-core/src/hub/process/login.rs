//! What a login has to do with processes: one that does not start without, one login at a time, and
//! one whose credentials have run out.

use acp_wire::ErrorObject;
use acpd_api::AuthSource;

use crate::auth::{changes_login, forget_credentials};
use crate::hub::Hub;
use crate::ids::{HostId, Requester, SessionKey, SlotId, Time};
use crate::input::Batch;
use crate::process::slot::{Slot, State, StopWhy, WaitFor, Waiting};
use crate::requests::purpose::Purpose;
use crate::session::turn::Queued;

fn is_login(waiting: &Waiting) -> bool {
    match &waiting.what {
        WaitFor::Relay { method, .. } => changes_login(method),
        WaitFor::Initialize | WaitFor::New(_) | WaitFor::Adopt(_) => false,
    }
}

impl Hub {
    /// An agent does not even answer `initialize` without a login. Nobody waits for it any more: its
    /// next process comes with a login, or with a person's next prompt.
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
        let fault = self.login_fault(slot, &error.message);
        self.refuse_waiters(slot, &fault, out);
        for key in self.sessions.of_slot(slot) {
            if self.wants_host(key) {
                self.session_needs_login(key, error, out);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()), out);
    }

    /// What a process is given is good for so long.
    pub(crate) fn on_credentials_good(&mut self, host: HostId, left: u64) {
        let Some(id) = self.processes.slot_of(host) else { return };
        let from = self.now.after(left);
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.stale_from = Some(from);
        }
    }

    /// What processes were given has aged while the machine was asleep.
    pub(crate) fn on_slept(&mut self, time: u64) {
        for host in self.processes.values_mut().filter_map(Slot::host_mut) {
            host.stale_from = host.stale_from.map(|from| Time(from.0.saturating_sub(time)));
        }
    }

    /// A process wants a login and was started with credentials that are too old by now: it is started
    /// anew with fresh ones, once until a prompt works, and not while it works on something. Whether
    /// that is so; it is no want of a login then.
    pub(crate) fn renew_credentials(&mut self, slot: SlotId, out: &mut Batch) -> bool {
        let agent = &self.processes[&slot];
        if agent.renewed {
            return self.is_renewed(slot);
        }
        let stale_from = agent.host().and_then(|host| host.stale_from);
        let is_stale = stale_from.is_some_and(|from| from <= self.now);
        if !agent.is_up() || !is_stale || self.is_at_work(slot) {
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

    /// Whether a process goes down to be started anew with fresh credentials.
    pub(crate) fn is_renewed(&self, slot: SlotId) -> bool {
        let agent = &self.processes[&slot];
        agent.renewed && matches!(agent.state, State::Stopping { why: StopWhy::Restart, .. })
    }

    /// A prompt was refused by a process that is started anew with fresh credentials. The agent has
    /// said nothing but that, so the next process gets it.
    pub(crate) fn prompt_again(&mut self, key: SessionKey, prompt: Queued, out: &mut Batch) {
        let text = "the agent's login has run out: it is started anew with fresh credentials, and \
                    gets the prompt again";
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

    /// Whether a login or a logout is under way in this process for somebody. One whose client has
    /// gone may never end, and keeps nobody else waiting.
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
