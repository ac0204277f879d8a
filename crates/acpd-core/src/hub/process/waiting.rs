//! Requests of clients that wait for an agent, sessions that lack a login, and inputs of
//! [`crate::process::logins`].

use acp_wire::{ErrorObject, Id, locate, set_id};
use acpd_api::{AuthSource, AuthState, Reason};

use crate::fault::{Fault, Refusal};
use crate::hub::Hub;
use crate::ids::{HostId, Requester, SessionKey, SlotId};
use crate::params::raw;
use crate::process::logins::{Activity, changes_login};
use crate::process::slot::{Asker, Directory, WaitFor, Waiting};
use crate::record::{Dormant, Purpose};
use crate::session::Relayed;
use crate::session::turn::Queued;

impl Hub {
    pub(crate) fn with_agent(&mut self, slot: SlotId, waiting: Waiting) -> Result<(), Fault> {
        let needed = self.need_agent(slot, Asker::Person);
        if needed.is_ok() && self.processes[&slot].is_up() {
            self.serve_waiting(slot, waiting);
        } else if needed.is_ok() {
            self.processes.wait(slot, waiting);
        }
        // The slot may have been made for this request alone.
        self.remove_unused_slot(slot);
        needed
    }

    /// Asks an agent for a session, in the process that is meant for one of this client.
    pub(crate) fn open_at_agent(
        &mut self,
        profile: &str,
        to: Requester,
        what: WaitFor,
    ) -> Result<(), Fault> {
        let offer = self.clients.get(&to.client).and_then(|client| client.offer.clone());
        let slot = self.slot_for_new(profile, offer.as_deref());
        self.with_agent(slot, Waiting::new(to, what))
    }

    pub(crate) fn serve_waiting(&mut self, slot: SlotId, waiting: Waiting) {
        let Waiting { to, what, directory } = waiting;
        if !self.clients.contains_key(&to.client) {
            return;
        }
        if let Err(fault) = self.host_to_ask(slot) {
            return self.refuse(&to, &fault);
        }
        match what {
            WaitFor::Initialize => {
                let profile = self.processes[&slot].profile().to_owned();
                self.send_initialized(&to, &profile);
            }
            WaitFor::New(_) if directory != Directory::There => {
                self.find_directory_for(slot, Waiting::new(to, what));
            }
            WaitFor::New(new) if new.fork.is_some() => self.ask_for_fork(slot, new),
            WaitFor::New(mut new) => {
                let (params, notices) = (&mut new.params, &mut new.notices);
                let (servers, params) =
                    self.gather_servers(slot, to.client, &new.cwd, params, notices);
                let why = Purpose::NewSession(new);
                self.request_with(slot, why, "session/new", &raw(&params), &servers);
            }
            WaitFor::Adopt(adoption) => self.begin_adoption(slot, adoption, directory),
            WaitFor::Relay { ref method, .. }
                if changes_login(method) && self.is_logging_in(slot) =>
            {
                self.processes.wait(slot, Waiting::new(to, what));
            }
            WaitFor::Relay { method, line } => {
                self.relay(slot, None, Relayed { to, method, line });
            }
        }
    }

    fn host_to_ask(&self, slot: SlotId) -> Result<HostId, Fault> {
        let host = self.processes[&slot].usable_host();
        let host = host.ok_or_else(|| self.agent_fault(slot, Reason::AgentExited))?;
        if self.processes.is_clogged(slot) {
            return Err(self.processes.clogged_fault(slot));
        }
        Ok(host)
    }

    /// Sends a client's request to an agent. `session`: the session that it is about, if any.
    pub(crate) fn relay(&mut self, slot: SlotId, session: Option<SessionKey>, relayed: Relayed) {
        let Relayed { to, method, line } = relayed;
        let host = match self.host_to_ask(slot) {
            Ok(host) => host,
            Err(fault) => return self.refuse(&to, &fault),
        };
        // Only these changes are not in their answers.
        let kept = if session.is_some() { "session/set_mode" } else { "authenticate" };
        let params = (method == kept).then(|| locate(&line, &["params"])).flatten();
        let params = params.map(|range| String::from_utf8_lossy(&line[range]).into_owned());
        let ask = self.ask(host, Purpose::Relay { to, session, method, params });
        let mut line = set_id(&line, &Id::issued(ask));
        if let Some(key) = session {
            line = self.session(key).to_agent_id(line);
        }
        self.processes.write(&mut self.cx, slot, line);
    }

    /// Returns whether the request was waiting for an agent or a session.
    pub(crate) fn forget_waiting(&mut self, to: &Requester) -> bool {
        let naming = self.naming.extract_if(.., |wait| wait.to == *to);
        if naming.count() > 0 || self.processes.forget_waiting(to) {
            return true;
        }
        let sessions = self.sessions.awake_mut();
        sessions.flat_map(|session| session.waiting.extract_if(.., |w| w.to == *to)).count() > 0
    }

    fn activity(&self, slot: SlotId) -> Activity {
        Activity {
            is_at_work: self.sessions.is_at_work(slot),
            is_logging_in: self.is_logging_in(slot),
        }
    }

    pub(crate) fn note_refusal(
        &mut self,
        slot: SlotId,
        method: &str,
        error: &ErrorObject,
    ) -> Refusal {
        let activity = self.activity(slot);
        self.processes.on_refusal(&mut self.cx, slot, method, error, activity)
    }

    pub(crate) fn authenticated(&mut self, slot: SlotId, method: Option<String>) {
        self.processes.on_login(&mut self.cx, slot, method);
        self.ask_auth_status(slot);
    }

    pub(crate) fn login_found(&mut self, profile: &str, source: AuthSource) {
        let sessions = &self.sessions;
        let is_at_work = |slot| sessions.is_at_work(slot);
        self.processes.on_login_found(&mut self.cx, profile, source, is_at_work);
    }

    pub(crate) fn ask_auth_status(&mut self, slot: SlotId) {
        if self.processes.known_of(slot).capabilities.auth_status {
            self.request(slot, Purpose::AuthStatus, "auth/status", &acpd_api::Empty {});
        }
    }

    pub(crate) fn login_reported(&mut self, slot: SlotId, state: Option<AuthState>) {
        let Some(state) = state else { return };
        let activity = self.activity(slot);
        self.processes.on_report(&mut self.cx, slot, state, activity);
    }

    /// Returns whether acpd would repeat the last login if the agent wanted one.
    pub(crate) fn may_log_in_again(&self, slot: SlotId) -> bool {
        let is_logging_in = || self.is_logging_in(slot);
        self.processes.login_to_repeat(slot, &self.cx.config, is_logging_in).is_some()
    }

    /// Queues a prompt again that the agent refused for want of a login, before it did anything.
    pub(crate) fn prompt_again(&mut self, key: SessionKey, prompt: Queued) {
        let text = if self.processes[&self.session(key).slot].is_logged_in_again() {
            "the agent's new process wants a login: acpd repeats the last one, and gives it the prompt again"
        } else {
            "the agent's login has run out: it is started anew with fresh credentials, and gets the prompt again"
        };
        self.notice(key, "warning", text);
        self.session_mut(key).queue.push_front(prompt);
        self.save_queued(key, 0);
    }

    /// Answers only the newest prompt with a sender, so that its user can log in; the others wait.
    pub(crate) fn session_needs_login(&mut self, key: SessionKey, error: &ErrorObject) {
        let slot = self.session(key).slot;
        self.make_dormant(key, Dormant::NeedsLogin, Some(error.message.clone()));
        let id = self.session(key).row.public_id.clone();
        let fault = self.processes.login_fault(slot, &error.message).session(&id);
        let queue = &mut self.session_mut(key).queue;
        let newest = queue.iter().rposition(|prompt| !prompt.senders.is_empty());
        if let Some(prompt) = newest.and_then(|at| queue.remove(at)) {
            self.drop_prompt(key, &prompt, &fault);
        }
        self.refuse_relayed(key, &fault);
    }

    /// The user tries again despite a missing login.
    pub(crate) fn try_without_login(&mut self, key: SessionKey) {
        if self.session(key).waits_for_login() {
            let row = self.session_mut(key).row.edit();
            row.rest = Dormant::Parked;
            row.reason = None;
            self.tell_state(key);
        }
    }
}
