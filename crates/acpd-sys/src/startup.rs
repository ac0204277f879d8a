//! Starting the daemon in the background, and hearing how that went.
//!
//! The client starts the daemon with the write end of a pipe and its number (on Windows, its name) in `ACPD_STARTUP_FD`. The
//! daemon writes `ready` and a newline, or `error ` and a text up to the end. So the client
//! can print the daemon's own reason at once, instead of guessing after a time-out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::dir::{self, DirError};
use crate::startup_pipe::{Started, Teller, start};

/// The environment variable that names the daemon's end of the pipe.
const VARIABLE: &str = "ACPD_STARTUP_FD";

/// The most that is read of a reason.
const REASON_LIMIT: usize = 64 * 1024;

/// Why the daemon could not even be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// Opening its log failed.
    #[error("cannot open the daemon's log")]
    Log(#[source] DirError),
    /// The program could not be run.
    #[error("cannot start `{}`", .exe.display())]
    Exec {
        exe: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl SpawnError {
    /// The way out, as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        match self {
            SpawnError::Log(error) => error.hint(),
            SpawnError::Exec { exe, .. } => {
                Some(format!("check that `{}` is installed and executable", exe.display()))
            }
        }
    }
}

/// The client's end: a daemon that has been started and has not yet spoken.
#[derive(Debug)]
pub struct StartupPipe(Started);

/// The outcome of the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartupOutcome {
    Ready,
    /// The daemon gave up, with these words.
    Failed(String),
    /// The daemon ended without a word: its log may say more.
    Died,
    /// The deadline passed. The daemon may still be starting.
    TimedOut,
}

/// The daemon's end. Dropped without a word it means that the daemon died.
#[derive(Debug)]
pub struct Notifier(Teller);

/// Starts `exe` as a daemon: no child of ours and in a session of its own, at `/`, with nothing on stdin, with stdout
/// and stderr appended to `log` (made, with its directory, private), our environment with a
/// mark that is no agent's, and one end of a pipe.
///
/// A name without a slash is looked up in `PATH`. Being no descendant matters: there are clients
/// that end every descendant of the command that they ran.
pub fn spawn_daemon(
    exe: &Path,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    log: &Path,
) -> Result<StartupPipe, SpawnError> {
    if let Some(parent) = log.parent() {
        dir::private_dir(parent).map_err(SpawnError::Log)?;
    }
    let out = dir::private_file(log).map_err(SpawnError::Log)?;
    command(exe, args)
        .and_then(|command| start(command, out, VARIABLE))
        .map(StartupPipe)
        .map_err(|source| SpawnError::Exec { exe: exe.to_owned(), source })
}

fn command(exe: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Command> {
    let is_bare_name = exe.components().count() == 1 && !exe.has_root();
    let program = if is_bare_name { exe.to_owned() } else { std::path::absolute(exe)? };
    let mut command = Command::new(program);
    command.args(args);
    // Another mark, and not none: under an agent, a process without one is that agent's.
    command.env("ACPD_HOST", "-");
    Ok(command)
}

/// From now on this file gets what the process writes to stderr, such as the words of a panic.
pub fn stderr_to(file: &File) -> io::Result<()> {
    crate::startup_pipe::stderr_to(file)
}

impl StartupPipe {
    /// Returns whether the daemon ends together with our group, because the system lets no process out of it:
    /// a Job of Windows.
    pub fn is_bound(&self) -> bool {
        self.0.is_bound()
    }

    /// Waits for the daemon's word for up to `deadline`.
    pub fn wait(mut self, deadline: Duration) -> StartupOutcome {
        let end = Instant::now() + deadline;
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            if said.starts_with(b"ready\n") {
                return StartupOutcome::Ready;
            }
            let count = match self.0.read_until(end, &mut piece) {
                Ok(Some(count)) => count,
                Ok(None) => return StartupOutcome::TimedOut,
                Err(_) => 0,
            };
            said.extend_from_slice(&piece[..count]);
            if count == 0 || said.len() >= REASON_LIMIT {
                break;
            }
        }
        let text = String::from_utf8_lossy(&said);
        match text.strip_prefix("error ") {
            Some(reason) => StartupOutcome::Failed(reason.trim_end().to_owned()),
            None => StartupOutcome::Died,
        }
    }
}

/// Takes over the daemon's end of the pipe, if a client gave one, and removes the variable, so
/// that no child is confused by it. To be called once, at the start of `main`, before there is
/// a second thread.
pub fn startup_notifier() -> Option<Notifier> {
    let value = std::env::var(VARIABLE).ok()?;
    // SAFETY: no other thread reads the environment: the contract above.
    unsafe { std::env::remove_var(VARIABLE) };
    Teller::named(&value).map(Notifier)
}

impl Notifier {
    /// Tells the client that the daemon listens.
    pub fn ready(self) {
        self.say("ready\n");
    }

    /// Tells the client why the daemon gives up.
    pub fn failed(self, reason: &str) {
        self.say(&format!("error {reason}"));
    }

    fn say(mut self, text: &str) {
        // A client that waits no longer does not concern the daemon.
        let _ = self.0.write_all(text.as_bytes());
    }
}
