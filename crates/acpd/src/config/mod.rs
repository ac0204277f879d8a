//! The configuration: what the user wrote, over the catalogue of known agents, over the defaults.
//!
//! The file is the user's and is only ever read. Everything in it is optional; a missing file means
//! all defaults. Every key is declared once, in `tables`, and that declaration yields the
//! reader, the default and the line in `docs/configuration.md` alike.

mod catalogue;
mod error;
mod file;
mod inherited;
mod keys;
mod launch;
mod on_disk;
mod redacted;
mod reference;
mod resolved;
mod schema;
mod tables;
mod values;

use std::io;
use std::path::Path;

use acpd_sys::file::ReadError;

pub use error::{ConfigError, UnknownAgent};
pub use keys::kind::LONGEST_LINE;
pub use keys::variables::Variables;
pub use launch::installed::{Installed, installed};
pub use launch::{
    CommandNotFound, environment, every_agent_gets, executable, fingerprint, resolve_program,
    with_home,
};
pub use on_disk::OnDisk;
pub use redacted::redacted;
pub use reference::reference_markdown;
pub use resolved::{Config, DEMO_AGENT, policy};
pub use schema::schema;
pub use tables::auth::{Credential, CredentialSource};
pub use tables::mcp::{McpServer, SecretSource, Value, Values};
pub use tables::profile::{
    Budget, ClosedBy, Daemon, EmptyTurn, Hooks, Offer, OnInterrupted, OnLimit, OnLost, Profile,
    Reseed, Restart, RestoreMethod, Sharing, Source, Transport, Tui, UseLoginShell, WhenOver,
    Workspace,
};
pub use tables::retention::Retention;
pub use values::values;

/// The longest file that is read, in bytes: far more than a person writes.
const LONGEST: u64 = 4 << 20;

/// Reads the configuration from the file at `path`; a missing file means all defaults.
///
/// # Errors
/// [`ConfigError`] when the file cannot be read, is not TOML, or says something that acpd does not
/// understand; it has all mistakes with their places in the file and, where there is one, the way out.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    parse(path, &text_of(path)?)
}

/// The text of the file; none is as good as an empty one.
fn text_of(path: &Path) -> Result<String, ConfigError> {
    match acpd_sys::file::read_trusted(path, LONGEST) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| ConfigError::not_text(path)),
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
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
