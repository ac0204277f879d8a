//! Read-only facts that span several machines, and names of agents and sessions. A session's name is
//! unique within its agent and workspace; sessions of different agents may share one.

use std::collections::BTreeSet;

use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, clipped, code, locate, set_id, set_member, str_at, with_one_outcome};
use acpd_api::{AgentRef, ErrorData, NAMESPACE, Reason, SessionInfo, SessionRef, nearest};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::fault::{Fault, login_hint, name_taken};
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey, SlotId};
use crate::offer::is_offered;
use crate::params::{raw_at, read};
use crate::process::logins::{changes_login, logins_of_others};
use crate::process::slot::WaitFor;
use crate::profile::{Profile, Reseed, Sharing};
use crate::record::{NewSession, Purpose, SessionRow};
use crate::session::numbered;
use crate::views::{retain_items, without_boolean_options};

pub(crate) const NOT_CONFIGURED: &str = "not configured any more";

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
            || self.sessions.awake().any(|(key, of)| of.slot == id && self.is_in_use(key))
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
        let busy = session.running.is_some() || session.is_restoring();
        busy || session.wants_host()
            || self.questions.are_open(key)
            || self.clients.is_attended(key)
            || session.works_outside_turns()
    }

    pub(crate) fn session_info(&self, key: SessionKey) -> SessionInfo {
        let session = self.session(key);
        let host = self.processes[&session.slot].host().filter(|_| !session.is_dormant());
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

    /// Returns an error if a session of the agent has the name, or is getting it, except for the
    /// session `of`. The error has no hint: the caller knows what else can be done.
    pub(crate) fn name_is_free(
        &self,
        agent: &str,
        cwd: &str,
        name: &str,
        of: Option<SessionKey>,
    ) -> Result<(), Fault> {
        let other = self.sessions.by_name(agent, cwd, name).filter(|other| Some(*other) != of);
        let is_taken = other.is_some() || self.is_being_named(agent, cwd, name);
        if is_taken { Err(name_taken(name, cwd)) } else { Ok(()) }
    }

    pub(crate) fn is_being_named(&self, agent: &str, cwd: &str, name: &str) -> bool {
        self.being_made()
            .any(|(of, new)| of == agent && new.cwd == cwd && new.name.as_deref() == Some(name))
    }

    /// Returns the sessions that are being made, with their agents.
    pub(crate) fn being_made(&self) -> impl Iterator<Item = (&str, &NewSession)> {
        let waiting = self.processes.values().flat_map(|slot| {
            slot.waiting.iter().filter_map(move |waiting| match &waiting.what {
                WaitFor::New(new) => Some((slot.profile(), new)),
                _ => None,
            })
        });
        let asked = self.requests.new_sessions().filter_map(move |(host, new)| {
            Some((self.processes[&self.processes.slot_of(host)?].profile(), new))
        });
        waiting.chain(asked)
    }

    /// Finds a session: by its name in this workspace, by name or id anywhere, then by prefix.
    pub(crate) fn resolve(&self, wanted: &SessionRef) -> Result<SessionKey, Fault> {
        let text = wanted.session.as_str();
        if let Some(number) = wanted.number {
            return self.sessions.by_number(number);
        }
        let of_agent = |key: &SessionKey| {
            wanted.agent.as_ref().is_none_or(|agent| self.session(*key).row.agent == *agent)
        };
        let find = |test: &dyn Fn(&SessionRow) -> bool| -> Vec<SessionKey> {
            let all = self.sessions.iter().filter(|(_, session)| test(&session.row));
            all.map(|(key, _)| *key).filter(of_agent).collect()
        };
        let here = |row: &SessionRow| wanted.cwd.as_deref() == Some(&row.cwd);
        let named = |row: &SessionRow| row.name.as_deref() == Some(text);
        // A numbered id begins with the id of another session, which may be gone.
        let others = |row: &SessionRow| row.public_id == numbered(text, row.key);
        let mut rounds = vec![find(&|row| named(row) && here(row))];
        if !wanted.exact_name {
            rounds.push(find(&|row| named(row) || row.public_id == text));
            rounds.push(find(&|row| {
                let name = row.name.as_deref().unwrap_or_default();
                let by_id = row.public_id.starts_with(text) && !others(row);
                !text.is_empty() && (name.starts_with(text) || by_id)
            }));
        }
        for found in rounds {
            match found.as_slice() {
                [] => {}
                [key] => return Ok(*key),
                several => return Err(self.sessions.ambiguous(text, several)),
            }
        }
        match &wanted.agent {
            Some(agent) if !self.is_agent(agent) => Err(self.unknown_agent(agent)),
            _ => Err(Fault::no_session(text)),
        }
    }

    pub(crate) fn agent_ref(&self, params: Option<&RawValue>) -> Result<String, Fault> {
        let AgentRef { agent } = read(params)?;
        self.is_configured(&agent)?;
        Ok(agent)
    }

    pub(crate) fn is_configured(&self, agent: &str) -> Result<(), Fault> {
        if self.cx.config.agents.contains_key(agent) {
            Ok(())
        } else {
            Err(self.unknown_agent(agent))
        }
    }

    pub(crate) fn unknown_agent(&self, name: &str) -> Fault {
        let shown = clipped(name, NAME);
        let (text, hint) = if self.is_agent(name) {
            (format!("agent `{shown}` is not configured any more"), not_configured_hint(name))
        } else {
            let near = nearest(name, self.cx.config.agents.keys().map(String::as_str));
            let meant = near.map(|near| format!("did you mean `{near}`?"));
            let hint = meant.unwrap_or_else(|| "`acpctl agent ls` lists the agents".to_owned());
            (format!("no agent `{shown}`"), hint)
        };
        Fault::new(Reason::AgentUnknown, text).with_code(code::INVALID_PARAMS).hint(hint)
    }

    /// Returns whether an agent of this name is configured, or has sessions.
    pub(crate) fn is_agent(&self, name: &str) -> bool {
        self.cx.config.agents.contains_key(name)
            || self.sessions.values().any(|session| session.row.agent == name)
    }

    pub(crate) fn agent_names(&self) -> BTreeSet<String> {
        let with_sessions = self.sessions.agents();
        self.cx.config.agents.keys().chain(with_sessions).cloned().collect()
    }
}

pub(crate) fn not_configured_hint(name: &str) -> String {
    format!(
        "configure `[agents.{name}]` again, without `enabled = false`, or let another agent go on: \
         `acpctl session handoff SESSION --to AGENT`"
    )
}
