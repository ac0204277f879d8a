//! The launch of a shim.
//!
//! The launch comes on the shim's stdin, so that no argument list and no environment shows the agent's
//! secrets: a length (u32, little endian), then [`Launch::encode`]. The shim answers with one line
//! on stdout. A launch of another version is refused: the daemon's program was replaced meanwhile.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use acpd_sys::process::{ProcessId, clear_environment, is_no_program};
use acpd_sys::startup::PipedProcess;
use acpd_sys::wait::Interest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const VERSION: u16 = 2;
/// Longest launch in bytes: more than the system allows for arguments and environment, at four
/// bytes per byte.
const LONGEST: usize = 32 << 20;
/// Longest answer in bytes.
const LONGEST_ANSWER: usize = 8 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub how: How,
    /// `ACPD_HOST` of the agent, and the name of the shim's directory.
    pub marker: String,
    /// The socket to listen on, in a directory of mode 0700.
    #[serde(with = "path")]
    pub socket: PathBuf,
    /// Output kept in memory before it is spooled, in bytes.
    pub memory: u64,
    /// Output spooled before the agent is held back, in bytes.
    pub spool: u64,
    pub ladder: LadderTimes,
    /// Time to continue without a daemon, from the start; `None` for no limit.
    pub lease: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// A program that talks on its stdin and stdout.
    Stdio(Program),
    /// A command without input, whose stdout and stderr are one pipe. With `is_line`, the program is
    /// a line for the system's shell. Its background processes run until it is stopped, and nothing
    /// of it is kept for a later daemon.
    Command { program: Program, is_line: bool },
    /// A program that will listen on a port of this machine.
    TcpSpawn { program: Program, port: u16, timeout: Duration },
    /// A running agent, which is never stopped.
    TcpConnect { addr: SocketAddr, timeout: Duration },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    #[serde(with = "path")]
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment, except `ACPD_HOST`, which the shim adds.
    pub env: Vec<(OsString, OsString)>,
    #[serde(with = "path")]
    pub cwd: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderTimes {
    /// From the end of stdin to SIGTERM.
    pub eof: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// From SIGTERM to SIGKILL for processes that an agent left when it ended by itself.
    pub leftovers: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// A child of this process.
    pub shim: ProcessId,
    /// `None` if there is only a connection.
    pub agent: Option<ProcessId>,
    /// The shim ends with a Job of this process, see [`PipedProcess::is_bound`].
    pub is_bound: bool,
}

/// Errors of a launch. The shim is gone or about to exit.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("the launch of an agent takes {0} bytes, {LONGEST} are allowed")]
    TooLong(usize),
    #[error("cannot start `{}`", .exe.display())]
    Exec { exe: PathBuf, source: io::Error },
    #[error("the agent's shim cannot start: {0}")]
    Shim(String),
    #[error("{message}")]
    Agent {
        message: String,
        /// Has the system's error number if there is one.
        source: io::Error,
    },
    /// The shim exited or was killed without an answer. Processes of the agent may be left.
    #[error("the agent's shim ended while it started")]
    Died,
    /// The deadline passed, and the shim was killed. Processes of the agent may be left.
    #[error("the agent's shim did not start in time")]
    TimedOut,
}

impl StartError {
    /// Returns whether another attempt fails until the user changes something.
    pub fn is_permanent(&self) -> bool {
        let StartError::Agent { source, .. } = self else { return false };
        matches!(
            source.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::InvalidInput
                // Was retried for the whole time of a start.
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut
        ) || is_no_program(source)
    }
}

impl Launch {
    /// Returns the version, then JSON.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = VERSION.to_le_bytes().to_vec();
        let json = serde_json::to_writer(&mut to, self);
        json.expect("every field can be written, and memory takes all");
        to
    }

    /// Fails with the reason.
    pub fn decode(bytes: &[u8]) -> Result<Launch, String> {
        let damaged = || "the launch is damaged".to_owned();
        let (version, json) = bytes.split_first_chunk().ok_or_else(damaged)?;
        match u16::from_le_bytes(*version) {
            VERSION => serde_json::from_slice(json).map_err(|_| damaged()),
            other => Err(format!(
                "the launch has version {other}, not {VERSION}: the program was replaced"
            )),
        }
    }

    pub(crate) fn receive(mut from: impl io::Read) -> io::Result<Launch> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(io::Error::other(format!("the launch is too long: {length} bytes")));
        }
        let mut bytes = Vec::new();
        from.take(length as u64).read_to_end(&mut bytes)?;
        Launch::decode(&bytes).map_err(io::Error::other)
    }
}

/// Paths as text of the system, which is not always UTF-8.
mod path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

#[derive(Debug)]
pub(crate) enum Report {
    /// The shim and its agent, which is `None` if there is only a connection.
    Ok(ProcessId, Option<ProcessId>),
    Agent {
        message: String,
        /// Error number of the system, or 0.
        errno: i32,
    },
    Shim(String),
}

impl Report {
    /// Returns one line; a message extends to its end.
    pub(crate) fn to_line(&self) -> String {
        let plain = |message: &str| message.replace('\n', " ");
        match self {
            Report::Ok(shim, agent) => {
                let agent = agent.unwrap_or_default();
                format!("ok {} {} {} {}\n", shim.pid, shim.start, agent.pid, agent.start)
            }
            Report::Agent { message, errno } => format!("agent {errno} {}\n", plain(message)),
            Report::Shim(message) => format!("shim {}\n", plain(message)),
        }
    }

    fn parse(line: &str) -> Option<Report> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "ok" => {
                let numbers: Vec<u64> =
                    rest.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
                let [shim, shim_start, agent, agent_start] = numbers[..] else { return None };
                let id = |pid, start| Some(ProcessId { pid: u32::try_from(pid).ok()?, start });
                let agent = id(agent, agent_start)?;
                let agent = Some(agent).filter(|agent| agent.pid != 0);
                Some(Report::Ok(id(shim, shim_start)?, agent))
            }
            "agent" => {
                let (errno, message) = rest.split_once(' ')?;
                Some(Report::Agent { message: message.to_owned(), errno: errno.parse().ok()? })
            }
            "shim" => Some(Report::Shim(rest.to_owned())),
            _ => None,
        }
    }
}

/// Starts a command that ends up in [`run`](crate::run) in its own session, sends `launch`, and
/// waits up to `deadline` for the answer. The shim's directory was created before. Blocks the
/// thread.
///
/// The shim is a child of this process, which has to reap it. After an error the caller first ends
/// what is left of the agent with [`Orphans`](crate::orphans::Orphans), then removes the directory.
pub fn start(
    mut command: Command,
    launch: &Launch,
    deadline: Duration,
) -> Result<Started, StartError> {
    let end = Instant::now() + deadline;
    let body = launch.encode();
    if body.len() > LONGEST {
        return Err(StartError::TooLong(body.len()));
    }
    let bytes = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    // This mark keeps the shim out of the tree of an agent above acpd, and all below it belongs to
    // an agent.
    clear_environment(&mut command);
    command.env("ACPD_HOST", format!("shim-{}", launch.marker)).current_dir("/");
    let exe = command.get_program().into();
    let mut shim =
        PipedProcess::start(command).map_err(|source| StartError::Exec { exe, source })?;
    let line = converse(&mut shim, &bytes, end).map_err(|error| {
        shim.kill();
        match error.kind() {
            io::ErrorKind::TimedOut => StartError::TimedOut,
            _ => StartError::Died,
        }
    })?;
    match Report::parse(&line) {
        Some(Report::Ok(id, agent)) => Ok(Started { shim: id, agent, is_bound: shim.is_bound }),
        Some(Report::Agent { message, errno }) => {
            let source = match errno {
                0 => io::Error::other("no more is known"),
                errno => io::Error::from_raw_os_error(errno),
            };
            Err(StartError::Agent { message, source })
        }
        Some(Report::Shim(message)) => Err(StartError::Shim(message)),
        None => Err(StartError::Died),
    }
}

/// Writes the launch and reads the answer.
fn converse(shim: &mut PipedProcess, launch: &[u8], end: Instant) -> io::Result<String> {
    let mut rest = launch;
    while !rest.is_empty() {
        if !shim.input.until(Interest::Write, end)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match shim.input.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let said = shim.output.read_until(end, LONGEST_ANSWER, |said| said.contains(&b'\n'))?;
    match String::from_utf8_lossy(&said).split_once('\n') {
        Some((line, _)) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
