//! Processes that outlive this one: shims, and the daemon, which reports the result of its start.
//!
//! The client starts the daemon with the write end of a pipe, whose number (on Windows, name) is in
//! `ACPD_STARTUP_FD`. The daemon writes `ready` and a newline, or `error ` and a text up to the
//! end. So the client can print the daemon's own reason at once, instead of guessing after a
//! timeout.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::files::{self, DirError};
use crate::tree::{MARK, NO_AGENT};

#[cfg(windows)]
mod job_escape;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

#[cfg(all(windows, feature = "daemon"))]
pub(crate) use job_escape::start_apart;
pub use system::*;

const VARIABLE: &str = "ACPD_STARTUP_FD";

const READY: &[u8] = b"ready\n";

/// Longest reason that is read, in bytes.
const REASON_LIMIT: usize = 64 * 1024;

#[derive(Debug, Error)]
pub enum SpawnError {
    #[error("cannot open the daemon's log")]
    Log(#[source] DirError),
    #[error("cannot start `{}`", .exe.display())]
    Exec { exe: PathBuf, source: io::Error },
}

impl SpawnError {
    /// Returns the fix as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        match self {
            SpawnError::Log(error) => error.hint(),
            SpawnError::Exec { exe, .. } => {
                Some(format!("check that `{}` is installed and executable", exe.display()))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartupOutcome {
    Ready,
    Failed(String),
    /// The daemon ended without a report: its log may say more.
    Died,
    /// The daemon may still be starting.
    TimedOut,
}

/// Starts `exe` as a daemon: in its own session and the root directory, without stdin, with stdout
/// and stderr appended to the private file `log`, and with this environment, marked as no agent's.
///
/// A name without a slash is looked up in `PATH`. The daemon is no descendant of this process,
/// because some clients end every descendant of a command that they ran.
pub fn spawn_daemon(
    exe: &Path,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    log: &Path,
) -> Result<StartupPipe, SpawnError> {
    if let Some(parent) = log.parent() {
        files::private_dir(parent).map_err(SpawnError::Log)?;
    }
    let log = files::private_file(log).map_err(SpawnError::Log)?;
    command(exe, args)
        .and_then(|command| system::start_daemon(command, log, VARIABLE))
        .map_err(|source| SpawnError::Exec { exe: exe.to_owned(), source })
}

fn command(exe: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Command> {
    let is_bare_name = exe.components().count() == 1 && !exe.has_root();
    let program = if is_bare_name { exe.to_owned() } else { std::path::absolute(exe)? };
    let mut command = Command::new(program);
    // Another mark instead of none: under an agent, a process without a mark belongs to that agent.
    command.args(args).env(MARK, NO_AGENT);
    Ok(command)
}

impl StartupPipe {
    pub fn wait(self, deadline: Duration) -> StartupOutcome {
        let end = Instant::now() + deadline;
        let is_ready = |said: &[u8]| said.starts_with(READY);
        let report = self.into_pipe(end);
        match report.and_then(|mut pipe| pipe.read_until(end, REASON_LIMIT, is_ready)) {
            Ok(said) if is_ready(&said) => StartupOutcome::Ready,
            Ok(said) => match String::from_utf8_lossy(&said).strip_prefix("error ") {
                Some(reason) => StartupOutcome::Failed(reason.trim_end().to_owned()),
                None => StartupOutcome::Died,
            },
            Err(error) if error.kind() == io::ErrorKind::TimedOut => StartupOutcome::TimedOut,
            Err(_) => StartupOutcome::Died,
        }
    }
}

/// The daemon's end of the pipe. Dropping it without a report means that the daemon died.
#[derive(Debug)]
pub struct Notifier(system::ReportPipe);

/// Takes the daemon's end of the pipe, if a client gave one, and removes the variable, which would
/// confuse children. Call it once, at the start of `main`, before there is a second thread.
pub fn startup_notifier() -> Option<Notifier> {
    let value = std::env::var(VARIABLE).ok()?;
    // SAFETY: no other thread reads the environment: the contract above.
    unsafe { std::env::remove_var(VARIABLE) };
    system::report_pipe(&value).map(Notifier)
}

impl Notifier {
    pub fn ready(mut self) {
        // The client may no longer wait.
        let _ = self.0.write_all(READY);
    }

    pub fn failed(mut self, reason: &str) {
        let _ = self.0.write_all(format!("error {reason}").as_bytes());
    }
}
