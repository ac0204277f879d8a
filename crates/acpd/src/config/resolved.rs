//! The configuration as it is used, resolved to plain values.

use std::collections::BTreeMap;

use acpd_api::is_named;
use acpd_policy::{Policy, PolicyConfig, PolicyError};

use crate::config::catalogue;
use crate::config::error::UnknownAgent;
use crate::config::tables::auth::CredentialSource;
use crate::config::tables::mcp::{McpServer, SecretSource, Value};
use crate::config::tables::profile::{Daemon, Hooks, Profile};

/// The agent that is used when nothing else is configured: the daemon's own scripted one.
pub const DEMO_AGENT: &str = "demo";

/// The whole configuration, resolved to plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How the daemon itself behaves.
    pub daemon: Daemon,
    /// What is run when something happens.
    pub hooks: Hooks,
    /// Who answers permission questions without a person.
    pub policy: PolicyConfig,
    /// The agent that a client gets that names none. [`Config::agent`] finds it, unless it is the
    /// demo agent and that was disabled.
    pub default_agent: String,
    /// Every known agent by its name, the disabled ones included.
    pub agents: BTreeMap<String, Profile>,
    /// MCP servers for agents by their names, the disabled ones included.
    pub mcp: BTreeMap<String, McpServer>,
}

impl Config {
    /// The profile of the agent called `name`.
    ///
    /// # Errors
    /// [`UnknownAgent`] when there is none of that name, or when it is disabled.
    pub fn agent(&self, name: &str) -> Result<&Profile, UnknownAgent> {
        match self.agents.get(name) {
            Some(profile) if profile.enabled => Ok(profile),
            Some(_) => Err(UnknownAgent::disabled(name)),
            None => Err(UnknownAgent::new(name, &enabled(&self.agents))),
        }
    }
}

impl Config {
    /// Variables of the daemon's environment that an agent gets beside those that every agent gets: names,
    /// or beginnings of names with a `*`. Whoever passes everything on names nothing.
    pub fn inherits<'c>(&'c self, profile: &'c Profile) -> Vec<&'c str> {
        let inherited = profile.inherit_env.iter().map(String::as_str);
        inherited.filter(|name| *name != "*").chain(self.sources(profile)).collect()
    }

    /// Variables that the user, and not only the catalogue, wants for an agent.
    pub fn wanted_variables<'c>(&'c self, profile: &'c Profile) -> impl Iterator<Item = &'c str> {
        let known = catalogue::KNOWN.get(&profile.name);
        // Lists add up.
        let known = known.map_or(0, |known| known.inherit_env.len());
        let written = profile.inherit_env.iter().skip(known).map(String::as_str);
        written.filter(|name| !name.ends_with('*')).chain(self.sources(profile))
    }

    /// Returns whether a variable is named for any agent.
    pub fn names_variable(&self, name: &str) -> bool {
        let agents = self.agents.values().filter(|profile| profile.enabled);
        let mut patterns = agents.flat_map(|profile| self.inherits(profile));
        patterns.any(|pattern| is_named(pattern, name.as_bytes()))
    }

    /// Variables that hold credentials of an agent, or secrets of its MCP servers.
    fn sources<'c>(&'c self, profile: &'c Profile) -> impl Iterator<Item = &'c str> {
        let credentials =
            profile.credentials.values().filter_map(|credential| match &credential.source {
                CredentialSource::Env(name) => Some(name.as_str()),
                _ => None,
            });
        let servers = self.mcp.values().filter(|server| server.is_for(&profile.name));
        let secrets = servers.flat_map(|server| server.env.values().chain(server.headers.values()));
        credentials.chain(secrets.filter_map(|value| match value {
            Value::Reference { source: SecretSource::Env(name), .. } => Some(name.as_str()),
            _ => None,
        }))
    }
}

/// Makes the rules usable. `~/` in them is the home of this process.
///
/// # Errors
/// A rule that cannot be understood is named.
pub fn policy(config: &PolicyConfig) -> Result<Policy, PolicyError> {
    Policy::new(config, std::env::var("HOME").ok().as_deref())
}

/// The names of the agents that can be used.
fn enabled(agents: &BTreeMap<String, Profile>) -> Vec<&str> {
    let usable = agents.iter().filter(|(_, profile)| profile.enabled);
    usable.map(|(name, _)| name.as_str()).collect()
}
