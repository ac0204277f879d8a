//! Directories, sockets and files of acpd.
//!
//! | | Linux | macOS | Windows |
//! | --- | --- | --- | --- |
//! | runtime | `$XDG_RUNTIME_DIR` | `~/Library/Application Support/acpd/run` | `%LOCALAPPDATA%\acpd\run` |
//! | state | `$XDG_STATE_HOME` | `~/Library/Application Support` | `%LOCALAPPDATA%` |

use std::env::consts::EXE_SUFFIX;
use std::env::current_exe;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use thiserror::Error;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub(crate) use system::socket_at;

/// Longest name of a log file in characters of one byte, without its extension.
const LOG_NAME_LIMIT: usize = 200;

/// Length of a shim socket's name. Two markers have the same name once in 70 billion cases; then
/// the second shim does not start.
const SHIM_NAME: usize = 7;

/// The directories of acpd, all absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Sockets; may vanish at logout.
    pub runtime: PathBuf,
    /// Database, lock and logs; survives a reboot.
    pub state: PathBuf,
    /// The user's own files, which acpd only reads.
    pub config: PathBuf,
}

#[derive(Debug, Error)]
pub enum PathError {
    #[error("no place for the {what} directory: the home directory is unknown")]
    NoHome { what: &'static str, variable: &'static str },
    /// A relative path would mean something else to each process.
    #[error("{variable} is `{}`, which is not an absolute path", .path.display())]
    NotAbsolute { variable: &'static str, path: PathBuf },
    #[error(
        "socket path `{}` has {length} bytes, the system allows {limit}",
        .path.display()
    )]
    SocketTooLong {
        path: PathBuf,
        /// In bytes.
        length: usize,
        limit: usize,
    },
}

impl PathError {
    /// Returns the fix as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            PathError::NoHome { variable, .. } => {
                format!("set {}, or {variable} to a directory of your own", system::HOME)
            }
            PathError::NotAbsolute { variable, .. } => {
                format!("set {variable} to an absolute path, or unset it")
            }
            PathError::SocketTooLong { .. } => {
                "set ACPD_RUNTIME_DIR to a shorter directory of your own".to_owned()
            }
        })
    }
}

impl Paths {
    /// Finds the directories without creating them. `ACPD_RUNTIME_DIR`, `ACPD_STATE_DIR` and
    /// `ACPD_CONFIG_DIR` override the rules of the system.
    pub fn discover() -> Result<Paths, PathError> {
        let runtime = match given("ACPD_RUNTIME_DIR")? {
            Some(path) => path,
            None => base("runtime", "ACPD_RUNTIME_DIR")
                .ok()
                .and_then(|base| base.runtime_dir())
                .map_or_else(system::fallback_runtime_dir, |dir| dir.join("acpd")),
        };
        let state = match given("ACPD_STATE_DIR")? {
            Some(path) => path,
            None => {
                let base = base("state", "ACPD_STATE_DIR")?;
                system::state_base(&base).join("acpd")
            }
        };
        let config = match given("ACPD_CONFIG_DIR")? {
            Some(path) => path,
            None => base("config", "ACPD_CONFIG_DIR")?.config_dir().join("acpd"),
        };
        let paths = Paths { runtime, state, config };
        paths.check_socket()?;
        Ok(paths)
    }

    pub fn socket(&self) -> PathBuf {
        socket_at(&self.runtime, "acpd.sock")
    }

    pub fn shim_sockets(&self) -> PathBuf {
        self.runtime.join("s")
    }

    /// The socket of the shim with this marker. Its path is never longer than the daemon's: where
    /// the daemon can listen, shims can, too.
    pub fn shim_socket(&self, marker: &str) -> PathBuf {
        let mut hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(marker);
        let mut name = String::new();
        for _ in 0..SHIM_NAME {
            name.extend(char::from_digit((hash % 36) as u32, 36));
            hash /= 36;
        }
        socket_at(&self.shim_sockets(), &name)
    }

    /// The file whose lock makes a daemon the only one. It is next to the database: two logins with
    /// different runtime directories share it.
    pub fn lock(&self) -> PathBuf {
        self.state.join("acpd.lock")
    }

    /// Prefix of journals that a restore has kept.
    pub const KEPT_ASIDE: &str = "acpd-before-restore-";

    pub fn database(&self) -> PathBuf {
        self.state.join("acpd.db")
    }

    /// The index for searches, which can be rebuilt.
    pub fn search_index(&self) -> PathBuf {
        self.state.join("search.db")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("log").join("acpd.log")
    }

    /// The log of an agent's stderr. The configuration takes only letters, digits and `-` for names
    /// of agents; any other name gives a file in the log directory, too.
    pub fn agent_log(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '%' };
        let file: String = name.chars().map(plain).take(LOG_NAME_LIMIT).collect();
        let mark = if file.is_empty() || system::is_device(&file) { "%" } else { "" };
        self.state.join("log").join("agents").join(format!("{mark}{file}.log"))
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    fn check_socket(&self) -> Result<(), PathError> {
        let path = self.socket();
        let length = path.as_os_str().len();
        let limit = system::SOCKET_PATH_LIMIT;
        if length > limit {
            return Err(PathError::SocketTooLong { path, length, limit });
        }
        Ok(())
    }
}

/// Returns the absolute path in a variable; an empty variable counts as unset.
fn given(variable: &'static str) -> Result<Option<PathBuf>, PathError> {
    match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        None => Ok(None),
        Some(value) => absolute(variable, PathBuf::from(value)).map(Some),
    }
}

fn absolute(variable: &'static str, path: PathBuf) -> Result<PathBuf, PathError> {
    if path.is_absolute() { Ok(path) } else { Err(PathError::NotAbsolute { variable, path }) }
}

/// The rules of the system, which all start at the home directory.
fn base(
    what: &'static str,
    variable: &'static str,
) -> Result<impl BaseStrategy + use<>, PathError> {
    let base = choose_native_strategy().map_err(|_| PathError::NoHome { what, variable })?;
    absolute(system::HOME, base.home_dir().to_owned())?;
    Ok(base)
}

/// Returns the user's home directory if it is valid Unicode.
pub fn home() -> Option<String> {
    std::env::home_dir()?.into_os_string().into_string().ok()
}

/// Returns the path of a program installed next to this one, else its name, for `PATH`.
pub fn beside(name: &str) -> PathBuf {
    let name = format!("{name}{EXE_SUFFIX}");
    let exe = current_exe().map(|exe| exe.with_file_name(&name));
    exe.ok().filter(|exe| exe.is_file()).unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn paths(runtime: &str) -> Paths {
        Paths { runtime: runtime.into(), state: "/s".into(), config: "/c".into() }
    }

    #[test]
    fn agent_names_never_leave_the_log_directory() {
        let paths = paths("/r");
        for name in ["", ".", "..", "../../etc/passwd", "a/b", "\0", ".hidden"] {
            let log = paths.agent_log(name);
            assert_eq!(log.parent(), Some(Path::new("/s/log/agents")), "{name:?}");
            assert!(!log.file_name().unwrap().to_str().unwrap().starts_with('.'));
        }
        assert_eq!(paths.agent_log("claude-2"), Path::new("/s/log/agents/claude-2.log"));
        assert_ne!(paths.agent_log("a/b"), paths.agent_log("a_b"));
        assert!(paths.agent_log(&"é".repeat(500)).file_name().unwrap().len() < 255);
    }

    #[test]
    fn names_of_two_agents_never_meet() {
        let paths = paths("/r");
        let names = ["con", "%63on", "CON", "nul.x", "a/b", "a_b", "a%2Fb"];
        let logs: std::collections::BTreeSet<_> =
            names.iter().map(|name| paths.agent_log(name)).collect();
        assert_eq!(logs.len(), names.len(), "{logs:?}");
    }

    #[test]
    fn l19_where_the_daemon_can_listen_its_shims_can() {
        let paths = paths("/r");
        let markers = ["", "g-1", "0123456789abcdef-9007199254740991"];
        let sockets = markers.map(|marker| paths.shim_socket(marker));
        for socket in &sockets {
            assert!(socket.as_os_str().len() <= paths.socket().as_os_str().len());
        }
        assert!(sockets[0] != sockets[1] && sockets[1] != sockets[2]);
    }
}
