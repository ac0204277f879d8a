//! The configuration: what the user wrote, over the catalogue of known agents, over the defaults.
//!
//! The file is the user's and is only ever read. Everything in it is optional; a missing file means
//! all defaults. Every key is declared once, in `tables`, and that declaration yields the
//! reader, the default and the line in `docs/configuration.md` alike.

mod catalogue;
mod error;
mod file;
mod keys;
mod launch;
mod reference;
mod tables;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use acpd_policy::{Policy, PolicyConfig, PolicyError};
use acpd_sys::file::ReadError;

pub use error::{CommandNotFound, ConfigError, UnknownAgent};
pub use keys::kind::LONGEST_LINE;
pub use launch::installed::{Installed, installed};
pub use launch::{environment, fingerprint, resolve_program, with_home};
pub use reference::reference_markdown;
pub use tables::auth::{Credential, CredentialSource};
pub use tables::mcp::{McpServer, SecretSource, Value, Values};
pub use tables::profile::{
    ClosedBy, Daemon, EmptyTurn, Hooks, Host, Offer, OnInterrupted, OnLost, Profile, Restart,
    RestoreMethod, Sharing, Source, Transport, Variables,
};

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

/// Makes the rules usable. `~/` in them is the home of this process.
///
/// # Errors
/// A rule that cannot be understood is named.
pub fn policy(config: &PolicyConfig) -> Result<Policy, PolicyError> {
    Policy::new(config, std::env::var("HOME").ok().as_deref())
}

/// The longest file that is read, in bytes: far more than a person writes.
const LONGEST: u64 = 4 << 20;

/// Reads the configuration from the file at `path`; a missing file means all defaults.
///
/// # Errors
/// [`ConfigError`] when the file cannot be read, is not TOML, or says something that acpd does not
/// understand; it names the place in the file and, where there is one, the way out.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    match acpd_sys::file::read(path, LONGEST) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| ConfigError::not_text(path))?;
            parse(path, &text)
        }
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => parse(path, ""),
        Err(error) => Err(ConfigError::unreadable(path, &error)),
    }
}

/// Reads the configuration from `text`, which came from the file at `path`.
///
/// # Errors
/// As [`load`], but for the reading of the file.
pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    file::read(path, text, catalogue::KNOWN.clone())
}

/// The names of the agents that can be used.
fn enabled(agents: &BTreeMap<String, Profile>) -> Vec<&str> {
    let usable = agents.iter().filter(|(_, profile)| profile.enabled);
    usable.map(|(name, _)| name.as_str()).collect()
}
