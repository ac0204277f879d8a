//! The configuration: the user's file over the catalogue of known agents over the defaults.
//!
//! acpd only reads the user's file. Everything in it is optional; a missing file means all
//! defaults.
//!
//! ```text
//!  config.toml ─▶ [document] ─▶ tables without mistakes ─▶ [layers] ─▶ one document ─▶ serde ─▶ [resolved::Config]
//!                    └─▶ every mistake, with its place        └─▶ the origin of each value: `config show`
//!  the types ─▶ schemars ─▶ [schema] ─▶ docs/config.schema.json, the reference, the keys of `config show`
//! ```
//!
//! Each table of the file is a plain struct of serde (`sections`, `profile`, `servers`). A field is
//! a key; its comment is the key's documentation; its type, or the format that it names (module
//! `format`), defines its values. To add a key, add a field, and a line in `defaults.toml` unless
//! it is unset by default.
//!
//! The schema is made for `config` verbs and documents only, never at the start of a daemon.

mod document;
mod error;
mod file;
mod format;
mod launch;
mod layers;
mod profile;
mod redacted;
#[cfg(test)]
mod reference_tests;
mod resolved;
mod schema;
mod secrets;
mod sections;
mod servers;
mod values;

use std::io;
use std::path::{Path, PathBuf};

use acpd_api::ConfigChanged;
use acpd_sys::files::{ReadError, Version, version};

pub use error::ConfigError;
pub use format::LONGEST_LINE;
pub(crate) use launch::expand_home;
pub use launch::installed::{Installed, installed};
use launch::starts_alike;
pub use launch::{
    command_line, environment, every_agent_gets, executable, fingerprint, resolve_program,
    with_home,
};
pub use profile::{
    ClosedBy, Offer, OnInterrupted, OnLimit, OnLost, Profile, Reseed, RestoreMethod, Sharing,
    StopTimes, Transport, Variables,
};
pub use redacted::redacted;
pub use resolved::{Config, DEMO_AGENT, policy};
pub use schema::schema;
pub use secrets::{Credential, CredentialSource, SecretSource, Value, Values};
pub use sections::{Budget, Daemon, Hooks, Retention, Tui, UseLoginShell, WhenOver, Workspace};
pub use servers::McpServer;
pub use values::values;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// Reads the configuration from the file at `path`; a missing file means all defaults. The error
/// has all mistakes, with their places in the file and hints.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    parse(path, &text_of(path)?)
}

/// Returns the text of the file; empty if there is none.
fn text_of(path: &Path) -> Result<String, ConfigError> {
    match acpd_sys::files::read_trusted(path, LONGEST) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| ConfigError::not_text(path)),
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(ConfigError::unreadable(path, &error)),
    }
}

pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    Ok(file::read(path, text)?.0)
}

/// The file that the daemon has read, and its changes after that. It is not watched: each question
/// looks at it.
#[derive(Debug)]
pub struct OnDisk {
    path: PathBuf,
    version: Option<Version>,
}

impl OnDisk {
    /// Call it before the file is read, so that no change is missed.
    pub fn now(path: &Path) -> OnDisk {
        OnDisk { path: path.to_owned(), version: version(path) }
    }

    pub fn change(&self, known: &Config) -> Option<ConfigChanged> {
        let now = version(&self.path);
        if now == self.version {
            return None;
        }
        let (mistakes, agents) = match load(&self.path) {
            Ok(config) if config == *known => return None,
            Ok(config) => {
                let is_other = |old: &&Profile| {
                    old.enabled && config.agent(&old.name).is_ok_and(|new| !starts_alike(old, new))
                };
                let agents = known.agents.values().filter(is_other);
                (Vec::new(), agents.map(|agent| agent.name.clone().into()).collect())
            }
            Err(error) => (error.mistakes().to_vec(), Vec::new()),
        };
        Some(ConfigChanged { at: now.map(|version| version.changed_at()), mistakes, agents })
    }
}
