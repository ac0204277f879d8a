//! The configuration as it is used, resolved to plain values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use acpd_policy::{Policy, PolicyConfig, PolicyError};

use crate::config::error::did_you_mean;
use crate::config::profile::Profile;
use crate::config::sections::{Budget, Daemon, Hooks, Retention, Tui, Workspace};
use crate::config::servers::McpServer;
use crate::failure::Failure;

/// The agent that is used when nothing else is configured: the daemon's own scripted one.
pub const DEMO_AGENT: &str = "demo";

/// The whole configuration, resolved to plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How the daemon itself behaves.
    pub daemon: Daemon,
    /// What is run when something happens.
    pub hooks: Hooks,
    /// What may be spent.
    pub budget: Budget,
    /// How much of what was said is kept.
    pub retention: Retention,
    pub tui: Tui,
    /// Directories with settings of their own.
    pub workspaces: Vec<Workspace>,
    /// Who answers permission questions without a person.
    pub policy: PolicyConfig,
    /// The agent that a client gets that names none. [`Config::agent`] finds it, unless it is the
    /// demo agent and that was disabled.
    pub default_agent: String,
    /// The file names no default agent: an installed one takes its place.
    pub default_is_found: bool,
    /// Every known agent by its name, the disabled ones included.
    pub agents: BTreeMap<String, Profile>,
    /// MCP servers for agents by their names, the disabled ones included.
    pub mcp: BTreeMap<String, McpServer>,
}

impl Config {
    /// Returns whether an agent may run on another machine, which has directories of its own.
    pub(crate) fn has_remote_agent(&self) -> bool {
        self.agents.values().any(Profile::is_remote)
    }

    /// The profile of the agent called `name`.
    ///
    /// # Errors
    /// When there is none of that name, or when it is disabled.
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

    /// What finds mistakes in the files of a directory: what the innermost directory says that says something.
    pub fn diagnostics(&self, dir: &Path) -> &[String] {
        let mut inside = self.workspaces_of(dir).into_iter();
        inside.find_map(|(_, workspace)| workspace.diagnostics.as_deref()).unwrap_or_default()
    }

    /// The directories with settings of their own that this one belongs to, the innermost first, each with its place in
    /// the file.
    pub(super) fn workspaces_of(&self, dir: &Path) -> Vec<(usize, &Workspace)> {
        let path = |of: &Workspace| of.path.clone().or_else(std::env::home_dir).unwrap_or_default();
        let all = self.workspaces.iter().enumerate();
        let mut inside: Vec<_> = all.filter(|(_, of)| dir.starts_with(path(of))).collect();
        inside.sort_by_key(|(_, of)| Reverse(path(of).components().count()));
        inside
    }
}

/// Makes the rules usable. `~/` in them is the home of this process.
///
/// # Errors
/// A rule that cannot be understood is named.
pub fn policy(config: &PolicyConfig) -> Result<Policy, PolicyError> {
    Policy::new(config, std::env::var("HOME").ok().as_deref())
}
