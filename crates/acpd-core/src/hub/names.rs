//! Names of agents and sessions. A session's name is unique within its agent and workspace;
//! sessions of different agents may share one.

use std::collections::BTreeSet;

use acp_wire::bound::NAME;
use acp_wire::clipped;
use acpd_api::{AgentRef, Reason, SessionRef, nearest};
use serde_json::value::RawValue;

use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::params::read;
use crate::process::slot::WaitFor;
use crate::record::SessionRow;
use crate::record::purpose::NewSession;
use crate::session::numbered;

pub(crate) const NOT_CONFIGURED: &str = "not configured any more";

pub(crate) fn not_configured_hint(name: &str) -> String {
    format!(
        "configure `[agents.{name}]` again, without `enabled = false`, or let another agent go on: \
         `acpctl session handoff SESSION --to AGENT`"
    )
}

impl Hub {
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
        if self.is_agent(name) {
            let text = format!("agent `{}` is not configured any more", clipped(name, NAME));
            return Fault::new(Reason::AgentUnknown, text)
                .with_code(acp_wire::code::INVALID_PARAMS)
                .hint(not_configured_hint(name));
        }
        let text = format!("no agent `{}`", clipped(name, NAME));
        let fault =
            Fault::new(Reason::AgentUnknown, text).with_code(acp_wire::code::INVALID_PARAMS);
        match nearest(name, self.cx.config.agents.keys().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint("`acpctl agent ls` lists the agents"),
        }
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
