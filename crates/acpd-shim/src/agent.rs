//! Starts an agent or connects to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::{
    self, ProcessId, StopSignal, detach_child, detach_child_into, discard, error_number, shell,
    try_wait_leader,
};
use acpd_sys::socket::listener_uid;
use acpd_sys::tree::Tree;
use acpd_sys::users::{may_do_anything, own_uid};
use acpd_sys::wait::{End, Interest, Wait, pipe};

use crate::cgroup::Cgroup;
use crate::errors::Errors;
use crate::launch::{How, Program, Report};

/// Pause between checks of an agent that acpd started and that does not listen yet.
const TRY: Duration = Duration::from_millis(50);
/// Pause between attempts to connect to an agent that acpd does not start.
const AGAIN: Duration = Duration::from_millis(200);
/// Longest time for one connection to this machine.
const CONNECT: Duration = Duration::from_secs(1);

/// A running or connected agent. None of its ends blocks.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The process, a child of the shim; `None` if there is only a connection.
    pub(crate) leader: Option<ProcessId>,
    /// On Windows, the pid is not reused while this exists.
    _child: Option<Child>,
    pub(crate) stdin: Option<End>,
    pub(crate) stdout: Option<End>,
    /// Output that is logged only.
    pub(crate) stderr: Vec<End>,
    /// Stdin and stdout are one connection.
    pub(crate) tcp: bool,
}

pub(crate) fn start(
    how: &How,
    marker: &str,
    cgroup: Option<&Cgroup>,
    errors: &mut Errors,
) -> Result<Agent, Report> {
    let (program, stdin) = match how {
        How::Stdio(program) => (program, Stdio::piped()),
        How::Command { program, .. } | How::TcpSpawn { program, .. } => (program, Stdio::null()),
        How::TcpConnect { addr, timeout } => {
            return connect(*addr, *timeout).map_err(|error| unreachable(*addr, &error));
        }
    };
    let (mut child, merged) =
        spawn(how, program, marker, cgroup, stdin).map_err(|error| refusal(program, &error))?;
    let agent = match how {
        How::TcpSpawn { port, timeout, .. } => {
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            over_tcp(&mut child, addr, Instant::now() + *timeout, errors)
                .map_err(|error| unreachable(addr, &error))
        }
        _ => over_stdio(&mut child).map_err(|error| refusal(program, &error)),
    };
    match agent {
        Ok(agent) => Ok(Agent { _child: Some(child), stdout: merged.or(agent.stdout), ..agent }),
        Err(report) => {
            if let Some(leader) = ProcessId::of(child.id()) {
                Tree::below_us(marker, leader).signal_all(StopSignal::Kill);
            }
            discard(child);
            Err(report)
        }
    }
}

/// Returns the child, and the output of a command.
fn spawn(
    how: &How,
    program: &Program,
    marker: &str,
    cgroup: Option<&Cgroup>,
    stdin: Stdio,
) -> io::Result<(Child, Option<End>)> {
    let mut command = match how {
        How::Command { is_line: true, .. } => shell(&program.program.to_string_lossy()),
        _ => Command::new(&program.program),
    };
    command
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .env("ACPD_HOST", marker)
        .current_dir(&program.cwd)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut merged = None;
    if let How::Command { .. } = how {
        let (output, input) = pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        merged = Some(output);
    }
    match cgroup.and_then(|cgroup| cgroup.procs().ok()) {
        Some(procs) => detach_child_into(&mut command, procs),
        None => detach_child(&mut command),
    }
    Ok((process::start(&mut command)?, merged))
}

fn refusal(program: &Program, error: &io::Error) -> Report {
    let message = if program.cwd.is_dir() {
        format!("cannot start `{}`: {error}", program.program.display())
    } else {
        format!("cannot start in `{}`: {error}", program.cwd.display())
    };
    Report::Agent { message, errno: error_number(error) }
}

fn unreachable(addr: SocketAddr, error: &io::Error) -> Report {
    let message = format!("cannot connect to the agent at {addr}: {error}");
    Report::Agent { message, errno: error_number(error) }
}

fn over_stdio(child: &mut Child) -> io::Result<Agent> {
    let stdin = child.stdin.take().map(End::new).transpose()?;
    let stdout = child.stdout.take().map(End::new).transpose()?;
    let stderr = child.stderr.take().map(End::new).into_iter().collect::<io::Result<_>>()?;
    let leader = Some(ProcessId::of_child(child)?);
    Ok(Agent { leader, _child: None, stdin, stdout, stderr, tcp: false })
}

fn over_tcp(
    child: &mut Child,
    addr: SocketAddr,
    end: Instant,
    errors: &mut Errors,
) -> io::Result<Agent> {
    let pipes = [child.stdout.take().map(End::new), child.stderr.take().map(End::new)];
    let mut talk = pipes.into_iter().flatten().collect::<io::Result<Vec<End>>>()?;
    let leader = ProcessId::of_child(child)?;
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
            return Err(io::Error::other(format!("it {}", exit.predicate())));
        }
        listen(&mut talk, errors);
    }
}

/// Waits for [`TRY`], and keeps what the agent prints: an agent whose output is not read would
/// block.
fn listen(talk: &mut Vec<End>, errors: &mut Errors) {
    let mut wait = Wait::empty();
    for end in &mut *talk {
        wait.add(end, Interest::Read, ());
    }
    wait.until(Instant::now() + TRY);
    let mut chunk = [0; 4096];
    talk.retain_mut(|end| match end.read(&mut chunk) {
        Ok(0) => false,
        Ok(count) => {
            errors.push(&chunk[..count], Instant::now());
            true
        }
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    });
}

fn connect(addr: SocketAddr, timeout: Duration) -> io::Result<Agent> {
    let end = Instant::now() + timeout;
    loop {
        // `connect_timeout` refuses a timeout of zero.
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&addr, left) {
            Ok(stream) => return over_stream(stream, addr),
            Err(error) if Instant::now() + AGAIN >= end => return Err(error),
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

fn over_stream(stream: TcpStream, addr: SocketAddr) -> io::Result<Agent> {
    if addr.ip().is_loopback()
        && let Some(uid) = listener_uid(addr)
        && uid != own_uid()
        && !may_do_anything(&uid)
    {
        let text = format!("user {uid} listens there, not you");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    stream.set_nodelay(true)?;
    let (stdout, stdin) = End::halves(stream)?;
    let (stdin, stdout) = (Some(stdin), Some(stdout));
    Ok(Agent { leader: None, _child: None, stdin, stdout, stderr: Vec::new(), tcp: true })
}
