//! Read-only facts that span several machines.

use acp_wire::{ErrorObject, code, locate, set_id, set_member, str_at, with_one_outcome};
use acpd_api::{ErrorData, NAMESPACE, Reason, SessionInfo};
use bytes::Bytes;
use serde_json::json;

use crate::auth::{changes_login, login_hint};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey, SlotId};
use crate::offer::is_offered;
use crate::params::raw_at;
use crate::process::logins::logins_of_others;
use crate::profile::{Profile, Reseed, Sharing};
use crate::record::purpose::Purpose;
use crate::session::State;
use crate::views::{retain_items, without_boolean_options};

impl Hub {
    pub(crate) fn profile_of(&self, id: SlotId) -> &Profile {
        self.processes.profile(id, &self.cx.config)
    }

    pub(crate) fn agent_fault(&self, id: SlotId, reason: Reason) -> Fault {
        self.processes.fault(id, reason, &self.cx.config)
    }

    /// Returns whether the session of a dedicated slot was never made or is deleted.
    pub(crate) fn is_orphan(&self, id: SlotId) -> bool {
        self.processes[&id].dedicated.is_some_and(|key| !self.sessions.contains_key(&key))
    }

    pub(crate) fn is_used(&self, id: SlotId) -> bool {
        let slot = &self.processes[&id];
        !slot.waiting.is_empty()
            || slot.host().is_some_and(|host| self.requests.is_working(host.id))
            || self.processes.stays_up(id)
            || self.sessions.of_slot(id).iter().any(|key| self.is_in_use(*key))
    }

    /// Removes the login methods that this client cannot use from an agent's `initialize` result.
    pub(crate) fn with_own_logins(&self, client: ClientId, profile: &str, result: &Bytes) -> Bytes {
        let client = &self.clients[&client];
        let (offer, has_terminal) =
            (client.offer.as_deref(), client.view.capabilities.auth_terminal);
        let others = logins_of_others(profile, offer, &self.cx.config);
        retain_items(result, &["authMethods"], |method| {
            let says = |member: &str| locate(method, &["_meta", member]).is_some();
            let is_terminal = str_at(method, &["type"]).as_deref() == Some("terminal");
            let can = has_terminal || (is_offered(offer, "terminal-auth") && says("terminal-auth"));
            (!is_terminal || can) && !others.iter().any(|member| says(member))
        })
    }

    /// Returns whether an abandoned turn of this session still runs in the agent's process.
    pub(crate) fn works_on(&self, slot: SlotId, agent_id: &str) -> bool {
        let host = self.processes[&slot].host();
        host.is_some_and(|host| self.requests.abandoned(host.id).any(|id| id == agent_id))
    }

    pub(crate) fn is_in_use(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let busy = session.running.is_some() || matches!(session.state, State::Restoring(_));
        busy || session.wants_host()
            || self.questions.are_open(key)
            || self.clients.is_attended(key)
            || session.has_busy_child()
    }

    pub(crate) fn session_info(&self, key: SessionKey) -> SessionInfo {
        let session = self.session(key);
        let host = self.processes[&session.slot]
            .host()
            .filter(|_| !matches!(session.state, State::Dormant));
        SessionInfo {
            pid: host.and_then(|host| host.pid),
            ..session.info(self.questions.waiting(key), self.clients.count_at(key))
        }
    }

    /// Returns whether the next prompt must wait for a turn, possibly an abandoned one.
    pub(crate) fn is_busy(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        session.running.is_some() || self.works_on(session.slot, &session.row.agent_id)
    }

    pub(crate) fn keeps_history(&self, key: SessionKey) -> bool {
        self.profile_of(self.session(key).slot).persist_history
    }

    pub(crate) fn can_fork(&self, profile: &str) -> Result<(), Fault> {
        let sharing = self.cx.config.agents.get(profile).map(|profile| profile.sharing);
        let (text, hint) = if !self.processes.known(profile).capabilities.fork {
            (format!("agent `{profile}` does not offer `session/fork`"), String::new())
        } else if sharing == Some(Sharing::Session) {
            let text = format!(
                "agent `{profile}` has a process for each session, and a fork begins in that of \
                 another one"
            );
            let hint = format!(
                "; or let its sessions share a process, with \
                 `sharing = \"agent\"` under `[agents.{profile}]` in the configuration: a crash then \
                 takes all of them along, and MCP servers may be seen by other sessions"
            );
            (text, hint)
        } else {
            return Ok(());
        };
        Err(Fault::new(Reason::Other, text)
            .with_code(code::METHOD_NOT_FOUND)
            .hint(format!("begin a new session: `acpctl run -s NAME PROMPT`{hint}")))
    }

    /// Returns whether a connected client is logging in or out in this process. Requests of clients
    /// that left do not count: they may never be answered.
    pub(crate) fn is_logging_in(&self, slot: SlotId) -> bool {
        let Some(host) = self.processes[&slot].usable_host() else { return false };
        self.requests.of_host(host).any(|why| match why {
            Purpose::Relay { to, method, .. } => {
                changes_login(method) && self.clients.may_get_answers(to.client)
            }
            _ => false,
        })
    }

    /// Adapts an agent's response to its client: id, boolean options, login hint. What an absent
    /// client can show is known when it returns.
    pub(crate) fn for_client(&self, slot: SlotId, to: &Requester, line: &Bytes) -> Bytes {
        let mut line = with_one_outcome(&set_id(line, &to.id));
        let here = self.clients.get(&to.client);
        if here.is_some_and(|client| !client.view.capabilities.boolean_options) {
            line = without_boolean_options(&line, &["result", "configOptions"]);
        }
        let error = raw_at(&line, &["error"]).map(ErrorObject::from_raw);
        if error.is_some_and(|error| {
            self.processes.login_source(slot, "", &error, &self.cx.config).is_some()
        }) {
            let data = ErrorData::new(Reason::NeedsLogin)
                .with_hint(login_hint(self.processes[&slot].profile()));
            // Data that is neither an object nor null is the agent's text: keep it.
            let own = locate(&line, &["error", "data"]).map(|at| line[at.start]);
            if own.is_none_or(|first| matches!(first, b'{' | b'n')) {
                let data = json!(data).to_string();
                line = set_member(&line, &["error", "data", NAMESPACE], data.as_bytes());
            }
        }
        line
    }

    pub(crate) fn reseeds_with(&self, key: SessionKey) -> Reseed {
        self.profile_of(self.session(key).slot).reseed
    }

    pub(crate) fn check_stays(&self) -> Result<(), Fault> {
        if !self.cx.shutdown.is_begun() {
            return Ok(());
        }
        Err(Fault::new(Reason::ShuttingDown, "acpd is shutting down").hint(
            "the next command starts it when it has ended; `acpctl daemon stop` again does not \
             wait for its agents",
        ))
    }
}
