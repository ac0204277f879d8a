use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::ARGUMENT;
use crate::limits;
use crate::process::{
    ExitKind, HAS_SUBREAPER, ProcessId, StopSignal, become_subreaper, close_inherited,
    detach_child, drop_stdio, error_number, reap_orphans, running_program, signal_one,
    try_wait_leader,
};
use crate::signals::SignalPipe;
use crate::tree::{MARK, Tree};
use crate::wait::{End, Interest, Wait};

/// Longest command line, in bytes.
const LONGEST: usize = 16 << 20;
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_secs(5);

/// Keeps a tree running until all copies and the connection are dropped.
pub type Lease = OwnedFd;

#[derive(Debug)]
pub struct Control {
    socket: BufReader<UnixStream>,
    /// Program and arguments, separated by NUL bytes, until they are sent.
    words: Vec<u8>,
}

/// Returns a command that starts a keeper for `inner`, and the connection to the keeper, which is
/// its stdin. Only program and arguments come from `inner`; directory, environment and output are
/// the keeper's. `exe` is the file of this program. Returns `inner` itself without a file, and on
/// systems without keepers.
pub fn wrap(exe: Option<&Path>, inner: Command) -> io::Result<(Command, Option<Control>)> {
    let Some(exe) = exe.filter(|_| HAS_SUBREAPER) else { return Ok((inner, None)) };
    let words: Vec<&OsStr> = std::iter::once(inner.get_program()).chain(inner.get_args()).collect();
    let count = words.len();
    let words = words.join(OsStr::new("\0")).into_vec();
    if words.len() > LONGEST {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    if words.split(|byte| *byte == 0).count() > count {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte in the command line"));
    }
    let (ours, theirs) = UnixStream::pair()?;
    // Not as arguments: `pkill -f` in one command must not find another keeper.
    let mut command = Command::new(running_program(exe));
    command.arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs)));
    Ok((command, Some(Control { socket: BufReader::new(ours), words })))
}

impl Control {
    /// Makes the new keeper start the command, and returns the command's process with a lease.
    /// Blocks the thread.
    pub fn begin(&mut self) -> io::Result<(ProcessId, Lease)> {
        let words = std::mem::take(&mut self.words);
        let mut socket = self.socket.get_ref();
        socket.write_all(&(words.len() as u32).to_le_bytes())?;
        socket.write_all(&words)?;
        match self.receive() {
            Some(("pid", _, 0)) => Err(io::Error::other("its start time cannot be read")),
            Some(("pid", pid, start)) => {
                let lease = self.socket.get_ref().as_fd().try_clone_to_owned()?;
                Ok((ProcessId { pid: pid.cast_unsigned(), start }, lease))
            }
            Some(("error", number, _)) if number != 0 => Err(io::Error::from_raw_os_error(number)),
            _ => Err(io::Error::other("the keeper of the command has ended")),
        }
    }

    /// Waits for the end of the command. Returns `None` if the keeper was killed. Blocks the thread.
    pub fn wait(&mut self) -> Option<ExitKind> {
        match self.receive()? {
            ("code", code, _) => Some(ExitKind::Code(code)),
            ("signal", signal, _) => Some(ExitKind::Signal(signal)),
            _ => None,
        }
    }

    /// Returns the keeper's next word, its number, and the start time that follows a pid.
    fn receive(&mut self) -> Option<(&'static str, i32, u64)> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (word, number) = (words.next()?, words.next()?);
        let start = words.next().and_then(|start| start.parse().ok()).unwrap_or(0);
        let word = ["pid", "error", "code", "signal"].into_iter().find(|known| *known == word)?;
        Some((word, number.parse().ok()?, start))
    }
}

/// Runs as a keeper: starts the command that comes on stdin, and returns when nothing of its tree
/// is left. Call it first in `main`: it closes every descriptor except stdin, stdout and stderr.
pub fn run() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn keep() -> io::Result<()> {
    close_inherited()?;
    become_subreaper()?;
    limits::no_core_dumps().ok();
    let mut signals = SignalPipe::open()?;
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let started = read_command(&mut control).and_then(|mut command| command.spawn());
    let child = match started {
        Ok(child) => child,
        Err(error) => return writeln!(control, "error {}", error_number(&error)),
    };
    // Readers of the output must not wait for the keeper.
    drop_stdio()?;
    let pid = child.id();
    let leader = ProcessId::of(pid).unwrap_or(ProcessId { pid, start: 0 });
    // Read here, because the command and this process may be gone before the daemon looks.
    writeln!(control, "pid {pid} {}", leader.start)?;
    let mut tree = Tree::below_us(std::env::var(MARK).unwrap_or_default(), leader);
    let kept = BTreeSet::from([pid]);
    let mut end = End::new(control.try_clone()?)?;
    let mut has_ended = false;
    limits::give_back_unused();
    loop {
        if !has_ended && let Some(exit) = try_wait_leader(pid)? {
            has_ended = true;
            // Without a daemon the connection is closed, which ends the tree below.
            match exit {
                ExitKind::Code(code) => writeln!(control, "code {code}").ok(),
                ExitKind::Signal(signal) => writeln!(control, "signal {signal}").ok(),
            };
        }
        reap_orphans(&kept);
        if has_ended && tree.is_empty() {
            return Ok(());
        }
        let mut wait = Wait::empty();
        wait.add(&mut signals, Interest::Read, false);
        wait.add(&mut end, Interest::Read, true);
        let ready = wait.until(Instant::now() + TICK);
        // SIGTERM is meant for the command, which gets its own.
        signals.take();
        if ready.contains(&true) {
            tree.end(GRACE, true);
            return Ok(());
        }
    }
}

fn read_command(from: &mut impl Read) -> io::Result<Command> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut words = vec![0; length];
    from.read_exact(&mut words)?;
    let mut words = words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(Stdio::null());
    detach_child(&mut command);
    Ok(command)
}

pub fn dismiss(keeper: ProcessId) {
    signal_one(keeper, StopSignal::Kill);
}
