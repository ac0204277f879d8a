//! The agent: how it is started or reached.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acpd_sys::process::{
    ProcessId, StopSignal, detach_child, detach_child_into, discard, try_wait_leader,
};
use acpd_sys::socket::{listener_uid, own_uid};
use acpd_sys::tree::Tree;
use acpd_sys::wait::never_block;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::cgroup::Cgroup;
use crate::errors::Errors;
use crate::launch::{How, Program, Report};

/// How often a connection is tried, in milliseconds.
const TRY: u8 = 50;
/// How long a connection to this machine may take.
const CONNECT: Duration = Duration::from_secs(1);

/// An agent that can be talked with. No end of it blocks.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its process, a child of ours, if it has one.
    pub(crate) leader: Option<ProcessId>,
    /// Where it reads, until that is closed.
    pub(crate) stdin: Option<File>,
    /// Where it writes, until it has closed that.
    pub(crate) stdout: Option<File>,
    /// Where it says whatever else it says.
    pub(crate) stderr: Vec<File>,
    /// Stdin and stdout are one connection.
    pub(crate) tcp: bool,
}

/// Starts or reaches it.
pub(crate) fn start(
    how: &How,
    marker: &str,
    cgroup: Option<&Cgroup>,
    errors: &mut Errors,
) -> Result<Agent, Report> {
    match how {
        How::Stdio(program) => {
            let mut child = spawn(program, marker, cgroup, Stdio::piped())?;
            over_stdio(&mut child).map_err(|error| {
                discard(child);
                refusal(program, &error)
            })
        }
        How::TcpSpawn { program, port, timeout } => {
            let mut child = spawn(program, marker, cgroup, Stdio::null())?;
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            over_tcp(&mut child, addr, Instant::now() + *timeout, errors).map_err(|error| {
                if let Some(leader) = ProcessId::of(child.id()) {
                    Tree::below_us(marker, leader).signal_all(StopSignal::Kill);
                }
                discard(child);
                unreachable(addr, &error)
            })
        }
        How::TcpConnect { addr, timeout } => {
            connect(*addr, *timeout).map_err(|error| unreachable(*addr, &error))
        }
    }
}

fn spawn(
    program: &Program,
    marker: &str,
    cgroup: Option<&Cgroup>,
    stdin: Stdio,
) -> Result<Child, Report> {
    let mut command = Command::new(&program.program);
    command
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .env("ACPD_HOST", marker)
        .current_dir(&program.cwd)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match cgroup.and_then(|cgroup| cgroup.procs().ok()) {
        Some(procs) => detach_child_into(&mut command, procs),
        None => detach_child(&mut command),
    }
    command.spawn().map_err(|error| refusal(program, &error))
}

fn refusal(program: &Program, error: &io::Error) -> Report {
    let message = if program.cwd.is_dir() {
        format!("cannot start `{}`: {error}", program.program.display())
    } else {
        format!("cannot start in `{}`: {error}", program.cwd.display())
    };
    Report::Agent { message, errno: number(error) }
}

fn unreachable(addr: SocketAddr, error: &io::Error) -> Report {
    let message = format!("cannot connect to the agent at {addr}: {error}");
    Report::Agent { message, errno: number(error) }
}

/// The system's number; of what the standard library or we refuse, the one of its kind.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidInput => Errno::EINVAL as i32,
        io::ErrorKind::PermissionDenied => Errno::EACCES as i32,
        io::ErrorKind::TimedOut => Errno::ETIMEDOUT as i32,
        _ => 0,
    })
}

fn missing() -> io::Error {
    io::Error::other("its pipes are missing")
}

fn over_stdio(child: &mut Child) -> io::Result<Agent> {
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    Ok(Agent {
        leader: Some(identity(child)?),
        stdin: Some(ready(stdin.into())?),
        stdout: Some(ready(stdout.into())?),
        stderr: vec![ready(stderr.into())?],
        tcp: false,
    })
}

fn over_tcp(
    child: &mut Child,
    addr: SocketAddr,
    end: Instant,
    errors: &mut Errors,
) -> io::Result<Agent> {
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let mut talk = vec![ready(stdout.into())?, ready(stderr.into())?];
    let leader = identity(child)?;
    loop {
        match TcpStream::connect_timeout(&addr, CONNECT) {
            Ok(stream) => {
                let agent = over_stream(stream, addr)?;
                return Ok(Agent { leader: Some(leader), stderr: talk, ..agent });
            }
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => {}
        }
        if let Some(exit) = try_wait_leader(leader.pid)? {
            return Err(io::Error::other(format!("it ended with {exit}")));
        }
        listen(&mut talk, errors)?;
    }
}

/// Waits a moment, and keeps what is said in it: an agent that nobody reads would stand still.
fn listen(talk: &mut Vec<File>, errors: &mut Errors) -> io::Result<()> {
    let mut fds: Vec<_> =
        talk.iter().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)).collect();
    match poll(&mut fds, PollTimeout::from(TRY)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut chunk = [0; 4096];
    talk.retain_mut(|file| match file.read(&mut chunk) {
        Ok(0) => false,
        Ok(count) => {
            errors.push(&chunk[..count]);
            true
        }
        Err(error) => {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        }
    });
    Ok(())
}

fn connect(addr: SocketAddr, timeout: Duration) -> io::Result<Agent> {
    // Nothing at all is no timeout to the standard library.
    let timeout = timeout.max(Duration::from_millis(1));
    over_stream(TcpStream::connect_timeout(&addr, timeout)?, addr)
}

fn over_stream(stream: TcpStream, addr: SocketAddr) -> io::Result<Agent> {
    if addr.ip().is_loopback()
        && let Some(uid) = listener_uid(addr)
        && uid != own_uid()
        && uid != 0
    {
        let text = format!("user {uid} listens there, not you");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    stream.set_nodelay(true)?;
    let stdin = Some(ready(stream.try_clone()?.into())?);
    let stdout = Some(ready(stream.into())?);
    Ok(Agent { leader: None, stdin, stdout, stderr: Vec::new(), tcp: true })
}

/// A child that we have not waited for keeps its pid, so it is there to be looked at.
fn identity(child: &Child) -> io::Result<ProcessId> {
    ProcessId::of(child.id()).ok_or_else(|| io::Error::other("its start time cannot be read"))
}

/// Our end, not blocking.
fn ready(end: OwnedFd) -> io::Result<File> {
    never_block(&end)?;
    Ok(File::from(end))
}
