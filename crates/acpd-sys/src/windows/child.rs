//! Children: how they start detached, how their end is waited for, how they are ended.
//!
//! A pid stays a process's own as long as a handle to it is open: the [`Child`] of the code that started it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle as _, IntoRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    CloseHandle, HANDLE_FLAG_INHERIT, STATUS_CONTROL_C_EXIT, SetHandleInformation,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED, GetExitCodeProcess,
};

use crate::console::{self, Call};
use crate::files::NULL;
use crate::handle::{check, wait_any};
use crate::os::{self, job};
use crate::process_table::{ExitKind, ProcessId, StopSignal};

const STANDARD: [u32; 3] = [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE];

/// Makes the command start in a group of its own, and suspended: it runs when it is adopted, see [`adopt`].
pub fn detach_child(cmd: &mut Command) {
    cmd.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED);
}

/// Like [`detach_child`]: there are no cgroups.
pub fn detach_child_into(cmd: &mut Command, _procs: File) {
    detach_child(cmd);
}

/// Like [`detach_child`]: no child inherits what is made here.
pub fn detach_child_alone(cmd: &mut Command) {
    detach_child(cmd);
}

/// Lets a child run that was just started with [`detach_child`], in a Job of its own. It is ended on an error.
pub fn adopt(pid: u32) -> io::Result<ProcessId> {
    job::adopt(pid)
}

/// Starts a child that was made ready with [`detach_child`] or one of its kin, and takes care of it as
/// [`adopt`] does.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let child = command.spawn()?;
    adopt(child.id())?;
    Ok(child)
}

/// Runs a program in place of this one: it has our console, its exit code is ours, and it ends with us, if we are killed.
/// Returns only if it cannot be started.
pub fn become_program(command: &mut Command) -> io::Error {
    // The child gets copies. It would get the handles themselves as well, and pass them on to what it starts.
    keep_standard_handles();
    // The program hears of all that a console asks, and it is for that to do something.
    let ended = console::listen_to_nothing()
        .and_then(|()| command.creation_flags(CREATE_SUSPENDED).spawn())
        .and_then(|mut child| job::bind(child.id()).and_then(|_| child.wait()));
    match ended {
        #[expect(clippy::exit, reason = "as if that program ran here")]
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Keeps our own standard handles from what we start: who reads our output to its end would wait for that, too.
pub(crate) fn keep_standard_handles() {
    for which in STANDARD {
        // SAFETY: it takes the handle that there is, or none, which is refused.
        unsafe { SetHandleInformation(GetStdHandle(which), HANDLE_FLAG_INHERIT, 0) };
    }
}

/// Keeps the pid of a child its own.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "it only is open")] OwnedHandle);

/// Keeps the pid of this child its own until the result is dropped.
pub fn hold(child: u32) -> io::Result<Hold> {
    os::open(child).map(Hold)
}

/// Closes nothing: an inherited handle is named by the program that leaves it. Our children inherit none.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn close_inherited() -> io::Result<()> {
    keep_standard_handles();
    Ok(())
}

/// Lets go of what stdin, stdout and stderr are, for nothing.
pub fn drop_stdio() -> io::Result<()> {
    for which in STANDARD {
        let null = File::options().read(true).write(true).open(NULL)?;
        // SAFETY: it only returns what there is.
        let before = unsafe { GetStdHandle(which) };
        // SAFETY: the handle is open, and is not closed: it is the process's own from now on.
        check(unsafe { SetStdHandle(which, null.into_raw_handle()) })?;
        // SAFETY: it was the process's own until now; the library asks for the handle each time that it needs it. None
        // is refused.
        unsafe { CloseHandle(before) };
    }
    Ok(())
}

/// Lets a request to end (`CTRL_BREAK`) pass, from now on.
pub fn ignore_term() -> io::Result<()> {
    console::listen(|call| call == Call::Break)
}

/// Waits until our child `pid` has ended. Its pid stays its own as long as its [`Child`] is there. Blocks the
/// thread.
pub fn wait_leader(pid: u32) -> io::Result<ExitKind> {
    let process = os::open(pid)?;
    wait_any(&[process.as_raw_handle()], None)?;
    exit_of(&process)
}

/// Like [`wait_leader`], without the wait: `None` if the child has not ended.
pub fn try_wait_leader(pid: u32) -> io::Result<Option<ExitKind>> {
    let process = os::open(pid)?;
    match wait_any(&[process.as_raw_handle()], Some(Duration::ZERO))? {
        None => Ok(None),
        Some(_) => exit_of(&process).map(Some),
    }
}

/// Waits as [`wait_leader`] does: there are no zombies.
pub fn reap(pid: u32) -> io::Result<ExitKind> {
    wait_leader(pid)
}

fn exit_of(process: &OwnedHandle) -> io::Result<ExitKind> {
    let mut code = 0;
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    Ok(ExitKind::Code(code as i32))
}

/// Returns 0: here no process becomes the parent of others' children.
pub fn reap_orphans(_kept: &BTreeSet<u32>) -> usize {
    0
}

/// Kills a child that was just started with [`detach_child`], and its group, and reaps it.
pub fn discard(mut started: Child) {
    if let Some(id) = ProcessId::of(started.id()) {
        // The group may have ended already.
        let _ = os::signal_group(id, StopSignal::Kill, true);
    }
    let _ = started.kill();
    let _ = started.wait();
}

/// Ends this process if it still is this process. A single process cannot be asked to.
pub fn signal_one(id: ProcessId, signal: StopSignal) {
    if signal == StopSignal::Kill {
        // The process may end at this moment, which is what we want of it.
        let _ = job::kill_one(id);
    }
}

/// How a process ends that lets this end it.
pub fn ends_by(signal: StopSignal) -> ExitKind {
    ExitKind::Code(match signal {
        StopSignal::Term => STATUS_CONTROL_C_EXIT,
        StopSignal::Kill => job::KILLED as i32,
    })
}

/// The file of this very program.
pub fn running_program(path: &Path) -> PathBuf {
    os::running_program(path)
}
