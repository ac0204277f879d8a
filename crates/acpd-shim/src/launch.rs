//! Start of a shim.
//!
//! The launch comes on the shim's stdin, so that no argument list and no environment shows the
//! agent's secrets: a length (u32, little endian) and as many bytes, [`Launch::encode`]. The answer is
//! one line on its stdout. Launches are not kept and not forwarded, so another version of them is
//! refused: it means that the daemon's program was replaced under its feet.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use acpd_sys::process::{ProcessId, clear_environment, is_no_program};
use acpd_sys::startup::PipedProcess;
use acpd_sys::wait::Interest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the launch's encoding.
const VERSION: u16 = 2;
/// The longest launch, in bytes: more than the system allows for arguments and environment, of which a byte
/// takes up to four.
const LONGEST: usize = 32 << 20;
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 8 << 10;

/// Orders for a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub how: How,
    /// `ACPD_HOST` of the agent: names its directory and its processes.
    pub marker: String,
    /// The socket to listen on, in a directory of ours (0700).
    #[serde(with = "path")]
    pub socket: PathBuf,
    /// Output kept in memory before it is spooled, in bytes.
    pub memory: u64,
    /// Output spooled before the agent is held back, in bytes.
    pub spool: u64,
    pub ladder: LadderTimes,
    /// Time to continue without a daemon, from the start; `None`: no limit.
    pub lease: Option<Duration>,
}

/// Ways to get at an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Start it, and talk on its stdin and stdout.
    Stdio(Program),
    /// Start it, and talk on a connection to a port of this machine, where it will listen.
    TcpSpawn {
        program: Program,
        port: u16,
        /// Longest time until it listens.
        timeout: Duration,
    },
    /// Connect to an agent that runs somewhere, and never stop it.
    TcpConnect { addr: SocketAddr, timeout: Duration },
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    #[serde(with = "path")]
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment but `ACPD_HOST`, which the shim adds.
    pub env: Vec<(OsString, OsString)>,
    #[serde(with = "path")]
    pub cwd: PathBuf,
}

/// When an agent that is being stopped gets more than a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LadderTimes {
    /// From the end of stdin to SIGTERM.
    pub eof: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// From SIGTERM to SIGKILL for the processes that an agent left when it ended by itself.
    pub leftovers: Duration,
}

/// A shim whose agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The shim, a child of this process.
    pub shim: ProcessId,
    /// The agent, if it is a process: not if there is only a connection.
    pub agent: Option<ProcessId>,
    /// The shim ends together with others that this process belongs to, see [`PipedProcess::is_bound`].
    pub is_bound: bool,
}

/// Reasons why there is no agent. The shim is gone or about to go.
#[derive(Debug, Error)]
pub enum StartError {
    /// The launch cannot be told to a shim.
    #[error("the launch of an agent takes {0} bytes, {LONGEST} are allowed")]
    TooLong(usize),
    #[error("cannot start `{}`", .exe.display())]
    Exec { exe: PathBuf, source: io::Error },
    /// The shim could not do its own part.
    #[error("the agent's shim cannot start: {0}")]
    Shim(String),
    /// The agent could not be started or reached.
    #[error("{message}")]
    Agent {
        message: String,
        /// Error of the system, with its number where there is one.
        source: io::Error,
    },
    /// The shim ended, or was killed, without an answer. Something of the agent may be left.
    #[error("the agent's shim ended while it started")]
    Died,
    /// The deadline passed, and the shim was killed. Something of the agent may be left.
    #[error("the agent's shim did not start in time")]
    TimedOut,
}

impl StartError {
    /// Returns whether trying again is of no use before the user changes something.
    pub fn is_permanent(&self) -> bool {
        let StartError::Agent { source, .. } = self else { return false };
        matches!(
            source.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::InvalidInput
                // Tried for as long as a start may take.
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut
        ) || is_no_program(source)
    }
}

/// A launch that a shim cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LaunchError {
    #[error("the launch has version {0}, not {VERSION}: the program was replaced")]
    Version(u16),
    #[error("the launch is too long: {0} bytes")]
    TooLong(usize),
    #[error("the launch is damaged")]
    Damaged,
}

impl Launch {
    /// Returns the bytes that [`Launch::decode`] reads: the version, then JSON.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = VERSION.to_le_bytes().to_vec();
        let json = serde_json::to_writer(&mut to, self);
        json.expect("every field can be written, and memory takes all");
        to
    }

    /// Reads what [`Launch::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Launch, LaunchError> {
        let (version, json) = bytes.split_first_chunk().ok_or(LaunchError::Damaged)?;
        match u16::from_le_bytes(*version) {
            VERSION => serde_json::from_slice(json).map_err(|_| LaunchError::Damaged),
            other => Err(LaunchError::Version(other)),
        }
    }

    /// Reads a launch from the shim's stdin.
    pub(crate) fn receive(mut from: impl io::Read) -> io::Result<Launch> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(io::Error::other(LaunchError::TooLong(length)));
        }
        let mut bytes = Vec::new();
        from.take(length as u64).read_to_end(&mut bytes)?;
        Launch::decode(&bytes).map_err(io::Error::other)
    }
}

/// Paths as text of the system, which need not be UTF-8.
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

/// Answer of a shim.
#[derive(Debug)]
pub(crate) enum Report {
    /// The agent runs, or is connected: who this shim is, and who the agent.
    Ok(ProcessId, Option<ProcessId>),
    Agent {
        message: String,
        /// The system's number for it, 0 if there is none.
        errno: i32,
    },
    /// The shim itself cannot start.
    Shim(String),
}

impl Report {
    /// One line. Messages are the last word of it, and end with it.
    pub(crate) fn to_line(&self) -> String {
        let plain = |message: &str| message.replace('\n', " ");
        match self {
            Report::Ok(shim, agent) => {
                let agent = agent.unwrap_or(ProcessId { pid: 0, start: 0 });
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

/// Starts `exe shim dir` in a session of its own, tells it `launch`, and waits up to `deadline` for
/// its answer. `dir` is its directory, made before. Blocks the thread.
///
/// The shim stays a child of this process: a caller that reaps its children reaps that one too. After an
/// error the directory is the caller's to remove; before that, what may be left of the agent is to be
/// ended with [`Orphans`](crate::orphans::Orphans).
pub fn start(
    exe: &Path,
    launch: &Launch,
    dir: &Path,
    deadline: Duration,
) -> Result<Started, StartError> {
    let mut command = Command::new(exe);
    command.arg("shim").arg(dir);
    start_command(command, launch, deadline)
}

/// Like [`start`], with a command that ends up in [`run`](crate::run).
pub fn start_command(
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
    // Not a part of any agent's tree, should we run under one; and all that is below it is an agent's.
    clear_environment(&mut command);
    command.env("ACPD_HOST", format!("shim-{}", launch.marker)).current_dir("/");
    let exe = command.get_program().into();
    let mut shim =
        PipedProcess::start(command).map_err(|source| StartError::Exec { exe, source })?;
    let answer = converse(&mut shim, &bytes, end);
    match answer {
        Ok(Some(line)) => match Report::parse(&line) {
            Some(Report::Ok(id, agent)) => {
                Ok(Started { shim: id, agent, is_bound: shim.is_bound() })
            }
            Some(Report::Agent { message, errno }) => {
                let source = match errno {
                    0 => io::Error::other("no more is known"),
                    errno => io::Error::from_raw_os_error(errno),
                };
                Err(StartError::Agent { message, source })
            }
            Some(Report::Shim(message)) => Err(StartError::Shim(message)),
            None => Err(StartError::Died),
        },
        Ok(None) => {
            // The shim may have ended at this moment.
            shim.kill();
            Err(StartError::TimedOut)
        }
        Err(_) => {
            shim.kill();
            Err(StartError::Died)
        }
    }
}

/// Writes the launch and reads the answer; `None` if the deadline passes first.
fn converse(shim: &mut PipedProcess, launch: &[u8], end: Instant) -> io::Result<Option<String>> {
    let PipedProcess { input, output, .. } = shim;
    let mut rest = launch;
    while !rest.is_empty() {
        if !input.until(Interest::Write, end)? {
            return Ok(None);
        }
        match input.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut said = Vec::new();
    let mut chunk = [0; 512];
    loop {
        if let Some(line) = said.iter().position(|byte| *byte == b'\n') {
            return Ok(Some(String::from_utf8_lossy(&said[..line]).into_owned()));
        }
        if !output.until(Interest::Read, end)? {
            return Ok(None);
        }
        match output.read(&mut chunk) {
            Ok(count) if count > 0 && said.len() < LONGEST_ANSWER => {
                said.extend_from_slice(&chunk[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
