//! The whole configuration, in which agents have all their layers merged.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use acpd_api::is_named;
use acpd_policy::{Policy, PolicyConfig, PolicyError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::error::did_you_mean;
use crate::config::format::{As, Each, Record, Table, Word};
use crate::config::profile::Profile;
use crate::config::secrets::{CredentialSource, SecretSource, Value};
use crate::config::sections::{Budget, Daemon, Hooks, Host, Retention, Tui, Workspace};
use crate::config::servers::McpServer;
use crate::failure::Failure;

/// The agent if nothing else is configured: the daemon's own script.
pub const DEMO_AGENT: &str = "demo";

/// The configuration of acpd.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The agent for clients that name none. When unset: the first one configured under
    /// `[agents]`, else the first one of [known agents](#known-agents) that is tried and installed,
    /// else `demo`, a script.
    pub default_agent: String,
    #[serde(with = "As::<Record<Daemon>>")]
    pub daemon: Daemon,
    #[serde(with = "As::<Record<Hooks>>")]
    pub hooks: Hooks,
    #[serde(with = "As::<Record<Budget>>")]
    pub budget: Budget,
    #[serde(with = "As::<Record<Retention>>")]
    pub retention: Retention,
    #[serde(with = "As::<Record<Tui>>")]
    pub tui: Tui,
    /// What counts for every agent.
    #[serde(with = "As::<Record<Profile>>")]
    pub(super) defaults: Profile,
    /// Agents: those that acpd knows, and your own.
    #[serde(with = "As::<Table<Word, Record<Profile>>>")]
    pub agents: BTreeMap<String, Profile>,
    /// Directories with settings of their own.
    #[serde(rename = "workspace", with = "As::<Each<Record<Workspace>>>")]
    pub workspaces: Vec<Workspace>,
    /// MCP servers for agents.
    #[serde(with = "As::<Table<Word, Record<McpServer>>>")]
    pub mcp: BTreeMap<String, McpServer>,
    /// Other machines, for acpctl. The daemon does not use them.
    #[serde(with = "As::<Table<Word, Record<Host>>>")]
    pub(super) hosts: BTreeMap<String, Host>,
    /// Who answers permission questions without a person.
    #[serde(with = "As::<Record<PolicyConfig>>")]
    pub policy: PolicyConfig,
    /// The file names no default agent; an installed one is used instead.
    #[serde(skip)]
    pub default_is_found: bool,
}

impl Config {
    /// Returns whether an agent may run on another machine, with other directories.
    pub(crate) fn has_remote_agent(&self) -> bool {
        self.agents.values().any(Profile::is_remote)
    }

    /// Returns the profile of an enabled agent.
    pub fn agent(&self, name: &str) -> Result<&Profile, Failure> {
        match self.agents.get(name) {
            Some(profile) if profile.enabled => Ok(profile),
            Some(_) => {
                let message = format!("agent `{name}` is disabled in the configuration");
                let hint =
                    format!("take `enabled = false` out of `[agents.{name}]` or `[defaults]`");
                Err(Failure::new(message, Some(hint)))
            }
            None => {
                let enabled = self.agents.values().filter(|profile| profile.enabled);
                let names: Vec<&str> = enabled.map(|profile| profile.name.as_str()).collect();
                let question = did_you_mean(name, names.iter().copied());
                let list = format!("known agents: {}", names.join(", "));
                let hint = question.into_iter().chain([list]).collect::<Vec<_>>().join(" ");
                Err(Failure::new(format!("no agent is called `{name}`"), Some(hint)))
            }
        }
    }

    /// Returns the diagnostics commands for a directory, from the innermost `[[workspace]]` that
    /// sets them.
    pub fn diagnostics(&self, dir: &Path) -> &[String] {
        let mut inside = self.workspaces_of(dir).into_iter();
        inside.find_map(|(_, workspace)| workspace.diagnostics.as_deref()).unwrap_or_default()
    }

    /// Returns the `[[workspace]]` tables that contain this directory, the innermost first, each
    /// with its index in the file.
    pub(super) fn workspaces_of(&self, dir: &Path) -> Vec<(usize, &Workspace)> {
        let all = self.workspaces.iter().enumerate();
        let mut inside: Vec<_> = all.filter(|(_, of)| dir.starts_with(of.dir())).collect();
        inside.sort_by_key(|(_, of)| Reverse(of.dir().components().count()));
        inside
    }

    /// Returns the variables of the daemon's environment that an agent gets in addition to those of
    /// every agent: names, or beginnings of names with a `*`. A lone `*` is left out.
    pub fn inherits<'c>(&'c self, profile: &'c Profile) -> Vec<&'c str> {
        let inherited = profile.inherit_env.iter().map(String::as_str);
        inherited.filter(|name| *name != "*").chain(self.sources(profile)).collect()
    }

    /// Returns the variables that the user wants for an agent, without those of the catalogue
    /// alone.
    pub fn wanted_variables<'c>(&'c self, profile: &'c Profile) -> impl Iterator<Item = &'c str> {
        let written = profile.inherit_env.iter().skip(profile.known_variables).map(String::as_str);
        written.filter(|name| !name.ends_with('*')).chain(self.sources(profile))
    }

    pub fn names_variable(&self, name: &str) -> bool {
        let agents = self.agents.values().filter(|profile| profile.enabled);
        let mut patterns = agents.flat_map(|profile| self.inherits(profile));
        patterns.any(|pattern| is_named(pattern, name.as_bytes()))
    }

    /// Returns variables with credentials of an agent, or with secrets of its MCP servers.
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

/// Compiles the rules. `~/` in them is the home of this process. The error names the rule.
pub fn policy(config: &PolicyConfig) -> Result<Policy, PolicyError> {
    Policy::new(config, std::env::var("HOME").ok().as_deref())
}
