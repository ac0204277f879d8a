use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};
use rustix::io::retry_on_intr;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::{Entry, ExitKind, Liveness, ProcessId, StopSignal, scan_below};
use crate::files::null;
use crate::limits;

/// Makes the command start in its own session and group, with default signal handling, with the
/// original limits and umask of this process, and without its descriptors. The pid of the child is
/// then the id of its group and session.
pub fn detach_child(cmd: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; `start_detached`
    // makes system calls alone and allocates nothing.
    unsafe { cmd.pre_exec(start_detached) };
}

/// Does the same, and puts the child into the cgroup of this `cgroup.procs`, if allowed.
pub fn detach_child_into(cmd: &mut Command, procs: File) {
    detach_child(cmd);
    let enter = move || {
        // SAFETY: the buffer is one byte long; `procs` is open as long as this closure exists. A
        // child that may not enter stays where it is.
        unsafe { libc::write(procs.as_raw_fd(), b"0".as_ptr().cast(), 1) };
        Ok(())
    };
    // SAFETY: write is async-signal-safe, and nothing is allocated.
    unsafe { cmd.pre_exec(enter) };
}

/// Starts a child prepared with [`detach_child`].
pub fn start(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Prepares a detached child between fork and exec. Async-signal-safe.
pub(crate) fn start_detached() -> io::Result<()> {
    setsid()?;
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator() {
        // SAFETY: the default disposition runs no code of this program. KILL and STOP refuse, which
        // leaves them at their default.
        let _ = unsafe { sigaction(signal, &default) };
    }
    SigSet::empty().thread_set_mask()?;
    keep_from_next_program();
    limits::restore()
}

/// End of the descriptors that are marked one by one, where the system cannot mark all at once.
const LAST_DESCRIPTOR: RawFd = 4_096;

/// Closes all but the standard descriptors at the next exec: the program that started this one may
/// have left files, locks and pipes open. Async-signal-safe.
fn keep_from_next_program() {
    #[cfg(target_os = "linux")]
    {
        use libc::{CLOSE_RANGE_CLOEXEC, SYS_close_range, c_uint, syscall};
        // SAFETY: it marks descriptors and touches no memory.
        if unsafe { syscall(SYS_close_range, 3, c_uint::MAX, CLOSE_RANGE_CLOEXEC) } == 0 {
            return;
        }
    }
    for number in 3..LAST_DESCRIPTOR {
        // SAFETY: it marks a descriptor; a number that is not open is refused.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Borrows a descriptor that another program left open under this number.
pub(crate) fn inherited<'a>(number: RawFd) -> io::Result<BorrowedFd<'a>> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: it is only looked at and copied, by calls that refuse a closed one.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Takes the descriptor that the previous program left under this number. Call it once.
pub(crate) fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    fcntl(inherited(number)?, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, as the call above has shown, and was left to this program alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Leaves a descriptor open for the next program in this process, and returns its number.
pub(crate) fn leave_inherited(fd: BorrowedFd<'_>) -> io::Result<RawFd> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(fd.as_raw_fd())
}

pub fn drop_stdio() -> io::Result<()> {
    let null = null()?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}

/// Executes a program in this process; returns only on failure.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Closes every descriptor except stdin, stdout and stderr. Call it first in `main`, before
/// anything is opened that is still needed.
pub fn close_inherited() -> io::Result<()> {
    let mut inherited: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        let name = entry?.file_name();
        inherited.extend(name.to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in inherited.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: nothing of this process uses it: the contract above. The listing's own is closed
        // already, which gives an error.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

fn signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Kill => Signal::SIGKILL,
    }
}

/// Refuses numbers that do not name one process: to the kernel 0 and negative numbers mean groups,
/// and 1 is init.
fn child(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1);
    pid.map(Pid::from_raw).ok_or_else(|| Errno::ECHILD.into())
}

/// Waits until the child has ended. It stays a zombie, so that its pid and group id are not reused
/// before [`reap`]. Blocks the thread.
pub fn wait_leader(pid: u32) -> io::Result<ExitKind> {
    wait(pid, WaitIdOptions::NOWAIT)?.ok_or_else(|| Errno::ECHILD.into())
}

/// Like [`wait_leader`], but returns `None` if the child runs.
pub fn try_wait_leader(pid: u32) -> io::Result<Option<ExitKind>> {
    wait(pid, WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)
}

/// Waits until the child has ended, and releases its pid. Blocks the thread.
pub fn reap(pid: u32) -> io::Result<ExitKind> {
    wait(pid, WaitIdOptions::empty())?.ok_or_else(|| Errno::ECHILD.into())
}

/// Returns `None` if the child runs, with `NOHANG` only.
fn wait(pid: u32, options: WaitIdOptions) -> io::Result<Option<ExitKind>> {
    let pid = rustix::process::Pid::from_raw(child(pid)?.as_raw()).map(WaitId::Pid);
    let pid = pid.ok_or(Errno::ECHILD)?;
    let status = retry_on_intr(|| waitid(pid.clone(), options | WaitIdOptions::EXITED))?;
    Ok(status.map(|status| match status.exit_status() {
        Some(code) => ExitKind::Code(code),
        None => ExitKind::Signal(status.terminating_signal().unwrap_or_default()),
    }))
}

/// Reaps every zombie child that is not in `kept`, and returns their number. Most became children
/// of this process when their parents died. No other code may wait for a child that is not in
/// `kept`.
pub fn reap_orphans(kept: &BTreeSet<u32>) -> usize {
    let own_pid = std::process::id();
    let is_orphan = |entry: &Entry| {
        entry.is_zombie() && entry.parent == own_pid && !kept.contains(&entry.id.pid)
    };
    let reaped = |entry: &Entry| {
        let status = child(entry.id.pid).map(|pid| waitpid(pid, Some(WaitPidFlag::WNOHANG)));
        matches!(status, Ok(Ok(status)) if status != WaitStatus::StillAlive)
    };
    let entries = scan_below().unwrap_or_default();
    entries.iter().filter(|entry| is_orphan(entry) && reaped(entry)).count()
}

/// Kills and reaps a child that was just started with [`detach_child`], and its group.
pub fn discard(mut started: Child) {
    if let Ok(pid) = child(started.id()) {
        let _ = killpg(pid, Signal::SIGKILL);
    }
    let _ = started.kill();
    let _ = started.wait();
}

/// Sends the signal if the pid is still this process.
pub fn signal_one(id: ProcessId, stop: StopSignal) {
    // Right before the kill: another process gets the pid only after all other pids were used.
    if let (Liveness::Alive, Ok(pid)) = (id.is_alive(), child(id.pid)) {
        let _ = kill(pid, signal(stop));
    }
}

/// All processes below an agent's shim belong to the agent.
pub(crate) const ALL_BELOW_BELONGS: bool = true;

/// Returns the processes that the system counts to this one's tree: none on Unix.
pub(crate) fn members(_leader: ProcessId) -> Vec<u32> {
    Vec::new()
}

/// Signals the group that this process founded; a missing group is no error. `has_members` says
/// whether a process of the group runs.
pub(crate) fn signal_group(
    leader: ProcessId,
    stop: StopSignal,
    has_members: bool,
) -> io::Result<()> {
    match killpg(child(leader.pid)?, signal(stop)) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        // macOS returns this for a group of zombies.
        Err(Errno::EPERM) if !has_members => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the file of this program: `path`, or the running file if an upgrade removed or replaced
/// `path`. It can be executed while this process lives.
pub fn running_program(path: &Path) -> PathBuf {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    // Other processes can use this path of Linux, too.
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let is_other = id(&running).is_some_and(|found| id(path) != Some(found));
    if is_other { running } else { path.to_owned() }
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitKind::Code(code) => write!(f, "exit code {code}"),
            ExitKind::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> ExitKind {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitKind::Code(code),
            (None, signal) => ExitKind::Signal(signal.unwrap_or_default()),
        }
    }
}

/// Returns a name such as `SIGTERM`.
pub fn signal_name(number: i32) -> String {
    let name = Signal::try_from(number).map(Signal::as_str);
    name.map_or_else(|_| format!("SIG{number}"), str::to_owned)
}

pub fn kill_command(pid: u32) -> String {
    format!("kill -9 {pid}")
}

/// Returns a sentence without its period.
pub fn resume_hint(pid: u32) -> String {
    format!("`kill -CONT {pid}` continues it")
}

/// Returns the text with these bytes ([`OsStr::as_encoded_bytes`]).
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    Some(OsStr::from_bytes(bytes).to_owned())
}

/// Clears the environment, except for variables that no program runs without.
pub fn clear_environment(command: &mut Command) {
    command.env_clear();
}

pub fn is_same_variable(one: &OsStr, other: &OsStr) -> bool {
    one == other
}

pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    command
}

/// Returns 0 for an error without a number.
pub fn error_number(error: &io::Error) -> i32 {
    // The standard library refuses some arguments without asking the system.
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidInput => Errno::EINVAL as i32,
        io::ErrorKind::PermissionDenied => Errno::EACCES as i32,
        io::ErrorKind::TimedOut => Errno::ETIMEDOUT as i32,
        _ => 0,
    })
}

pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOEXEC as i32)
}
