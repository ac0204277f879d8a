//! Children: how they start detached, how their end is waited for, how they are ended.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::setsid;

use crate::files::NULL;
use crate::inherit::keep_from_next_program;
use crate::os::{as_nix, child, exit_kind};
use crate::process_table::{Entry, ExitKind, Liveness, ProcessId, StopSignal};
use crate::{limits, os};

/// Makes the command start in a session and group of its own, with default signal handling and
/// the limits and umask that we found. Its pid is then its group's and session's id.
pub fn detach_child(cmd: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; `start_detached`
    // makes system calls alone and allocates nothing.
    unsafe {
        cmd.pre_exec(start_detached);
    }
}

/// Like [`detach_child`], and the child puts itself into the cgroup with this `cgroup.procs`, if it may.
pub fn detach_child_into(cmd: &mut Command, procs: File) {
    detach_child(cmd);
    let enter = move || {
        // SAFETY: the buffer is ours and one byte long; `procs` is open as long as this closure
        // is. A child that may not enter stays where it is.
        unsafe { nix::libc::write(procs.as_raw_fd(), b"0".as_ptr().cast(), 1) };
        Ok(())
    };
    // SAFETY: write is async-signal-safe, and nothing is allocated.
    unsafe {
        cmd.pre_exec(enter);
    }
}

/// Like [`detach_child`]; and the child inherits no descriptors but the standard ones, even if our parent has
/// left others open to us.
pub fn detach_child_alone(cmd: &mut Command) {
    detach_child(cmd);
    // SAFETY: `keep_from_next_program` makes system calls alone, and allocates nothing.
    unsafe {
        cmd.pre_exec(|| {
            keep_from_next_program();
            Ok(())
        });
    }
}

/// Takes care of a child that was just started with [`detach_child`]: on other systems it runs only then.
pub fn adopt(pid: u32) -> io::Result<ProcessId> {
    ProcessId::of(pid).ok_or_else(|| io::Error::other("its start time cannot be read"))
}

/// Keeps the pid of a child its own. Here a child that was not waited for does that itself.
#[derive(Debug)]
pub struct Hold(());

/// Keeps the pid of this child its own until the result is dropped.
pub fn hold(_child: u32) -> io::Result<Hold> {
    Ok(Hold(()))
}

/// Lets go of what stdin, stdout and stderr are, for nothing.
pub fn drop_stdio() -> io::Result<()> {
    let null = File::options().read(true).write(true).open(NULL)?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}

/// Starts a child that was made ready with [`detach_child`] or one of its kin, and takes care of it as
/// [`adopt`] does.
pub fn start(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Executes a program in place of this one; returns only if that fails.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Closes every descriptor but stdin, stdout and stderr. To be called first in `main`, before
/// anything was opened that is still needed.
pub fn close_inherited() -> io::Result<()> {
    let mut inherited: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        let name = entry?.file_name();
        inherited.extend(name.to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in inherited.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: nothing of this process uses it: the contract above. The listing's own is closed
        // already, which gives an error.
        unsafe { nix::libc::close(fd) };
    }
    Ok(())
}

/// The steps of a detached child between fork and exec. Async-signal-safe.
pub(crate) fn start_detached() -> io::Result<()> {
    setsid()?;
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator() {
        // SAFETY: the default disposition runs no code of ours. KILL and STOP refuse, which
        // leaves them at their default.
        let _ = unsafe { sigaction(signal, &default) };
    }
    SigSet::empty().thread_set_mask()?;
    limits::restore()
}

/// Lets a request to end (`SIGTERM`) pass, from now on.
pub fn ignore_term() -> io::Result<()> {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: no code of ours runs for an ignored signal.
    unsafe { sigaction(Signal::SIGTERM, &ignored) }?;
    Ok(())
}

/// Waits until our child `pid` has ended, but leaves it a zombie, so that its pid and group id
/// stay its own until [`reap`]. Blocks the thread.
pub fn wait_leader(pid: u32) -> io::Result<ExitKind> {
    let pid = child(pid)?;
    loop {
        if let Some(exit) = os::wait_leader(pid, true)? {
            return Ok(exit);
        }
    }
}

/// Like [`wait_leader`], without the wait: `None` if the child has not ended.
pub fn try_wait_leader(pid: u32) -> io::Result<Option<ExitKind>> {
    os::wait_leader(child(pid)?, false)
}

/// Waits until our child `pid` has ended and lets it go. Blocks the thread.
pub fn reap(pid: u32) -> io::Result<ExitKind> {
    let pid = child(pid)?;
    loop {
        match waitpid(pid, None) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(status) => {
                if let Some(exit) = exit_kind(status) {
                    return Ok(exit);
                }
            }
        }
    }
}

/// Reaps every zombie that is our child and not in `kept`; their number. Most became our children when their
/// parents died. No other code may wait for a child that is not in `kept`.
pub fn reap_orphans(kept: &BTreeSet<u32>) -> usize {
    let own_pid = std::process::id();
    let is_orphan = |entry: &Entry| {
        entry.is_zombie() && entry.parent == own_pid && !kept.contains(&entry.id.pid)
    };
    let reaped = |entry: &Entry| {
        let status = child(entry.id.pid).map(|pid| waitpid(pid, Some(WaitPidFlag::WNOHANG)));
        matches!(status, Ok(Ok(status)) if status != WaitStatus::StillAlive)
    };
    let entries = os::scan_below().unwrap_or_default();
    entries.iter().filter(|entry| is_orphan(entry) && reaped(entry)).count()
}

/// Kills a child that was just started with [`detach_child`], and its group, and reaps it.
pub fn discard(mut started: Child) {
    if let Ok(pid) = child(started.id()) {
        // The group may have ended already.
        let _ = killpg(pid, Signal::SIGKILL);
    }
    let _ = started.kill();
    let _ = started.wait();
}

/// Sends the signal to this process if it still is this process.
pub fn signal_one(id: ProcessId, signal: StopSignal) {
    // Look right before the kill: the pid would have to go round in between to hit a stranger.
    if let (Liveness::Alive, Ok(pid)) = (id.is_alive(), child(id.pid)) {
        // The process may end at this moment, which is what we want of it.
        let _ = kill(pid, as_nix(signal));
    }
}

/// How a process ends that lets this signal end it.
pub fn ends_by(signal: StopSignal) -> ExitKind {
    ExitKind::Signal(as_nix(signal) as i32)
}

/// The file of this very program: the one at `path`, or what runs here if an upgrade has removed or replaced that. It
/// can be executed as long as this process lives, where the system has a way to that.
pub fn running_program(path: &Path) -> PathBuf {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let running = os::running_program(path);
    let is_other = id(&running).is_some_and(|found| id(path) != Some(found));
    if is_other { running } else { path.to_owned() }
}
