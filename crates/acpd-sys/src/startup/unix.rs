use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::libc;
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{ForkResult, dup2_stderr, fork};

use crate::process::{detach_child, inherited, leave_inherited, start_detached, take_inherited};
use crate::wait::End;

/// Returns whether a Job of Windows ends this process together with others. Never on Unix.
pub fn is_bound() -> bool {
    false
}

pub fn stderr_to(file: &File) -> io::Result<()> {
    Ok(dup2_stderr(file)?)
}

#[derive(Debug)]
pub struct StartupPipe {
    pipe: PipeReader,
    /// A Job of Windows ends the daemon together with this process. Never on Unix.
    pub is_bound: bool,
}

impl StartupPipe {
    /// Waits for the daemon to open its end of the pipe; [`io::ErrorKind::TimedOut`] after the
    /// deadline.
    pub(super) fn into_pipe(self, _deadline: Instant) -> io::Result<End> {
        End::new(self.pipe)
    }
}

/// Starts the daemon, which finds the number of its end of the pipe in `variable`.
pub(super) fn start_daemon(
    mut command: Command,
    log: File,
    variable: &str,
) -> io::Result<StartupPipe> {
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir("/");
    let (pipe, theirs) = io::pipe()?;
    let number = theirs.as_raw_fd();
    command.env(variable, number.to_string());
    // SAFETY: between fork and exec only async-signal-safe calls are allowed: fork and _exit are, and so are
    // `start_detached` and the call behind `leave_inherited`. The descriptor is open: `theirs` outlives the spawn.
    unsafe {
        command.pre_exec(move || {
            if let ForkResult::Parent { .. } = fork()? {
                libc::_exit(0);
            }
            start_detached()?;
            leave_inherited(BorrowedFd::borrow_raw(number)).map(drop)
        });
    }
    // The child exits at once; its child is the daemon. A failed exec is still reported.
    command.spawn()?.wait()?;
    drop(theirs);
    Ok(StartupPipe { pipe, is_bound: false })
}

pub(super) type ReportPipe = File;

pub(super) fn report_pipe(value: &str) -> Option<ReportPipe> {
    let number: RawFd = value.parse().ok()?;
    let found = fstat(inherited(number).ok()?).ok()?;
    if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT != SFlag::S_IFIFO {
        return None;
    }
    // Agents must not inherit the pipe: the client would wait for them.
    Some(File::from(take_inherited(number).ok()?))
}

/// A process that outlives this one, with pipes to its stdin and stdout. It is a child of this
/// process, which reaps it.
#[derive(Debug)]
pub struct PipedProcess {
    pub input: End,
    pub output: End,
    /// A Job of Windows ends the process together with this one. Never on Unix.
    pub is_bound: bool,
    process: Child,
}

impl PipedProcess {
    /// Starts a command that inherits no environment
    /// ([`clear_environment`](crate::process::clear_environment)).
    pub fn start(mut command: Command) -> io::Result<PipedProcess> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        detach_child(&mut command);
        let mut process = command.spawn()?;
        let missing = || io::Error::other("its pipes are missing");
        let input = End::new(process.stdin.take().ok_or_else(missing)?)?;
        let output = End::new(process.stdout.take().ok_or_else(missing)?)?;
        Ok(PipedProcess { input, output, is_bound: false, process })
    }

    pub fn kill(&mut self) {
        self.process.kill().ok();
    }
}
