//! The pipe of a daemon's report has a random name, which the daemon opens: no handle is inherited.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle as _, IntoRawHandle as _, OwnedHandle};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Console::{STD_ERROR_HANDLE, SetStdHandle};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};

use crate::files::null;
use crate::handle::check;
use crate::named_pipe::{Flow, one_way, random_name};
use crate::process::jobs;
use crate::socket::{Listener, Stream, connect, other_end};
use crate::startup::job_escape::{ApartProcess, start_apart};
use crate::wait::End;

/// Longest time for the daemon to reach its client.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns whether this process is in a Job, and ends with the Job.
pub fn is_bound() -> bool {
    // SAFETY: it only returns a number that stands for this process.
    let us = unsafe { GetCurrentProcess() };
    // Without an answer there is nothing to warn about.
    jobs::is_in_one(us).unwrap_or(false)
}

/// The handle stays open for as long as the process exists.
pub fn stderr_to(file: &File) -> io::Result<()> {
    let handle = file.try_clone()?.into_raw_handle();
    // SAFETY: the handle is open, and is not closed.
    check(unsafe { SetStdHandle(STD_ERROR_HANDLE, handle) })
}

#[derive(Debug)]
pub struct StartupPipe {
    listener: Listener,
    process: OwnedHandle,
    pub is_bound: bool,
}

impl StartupPipe {
    pub(super) fn into_pipe(self, deadline: Instant) -> io::Result<End> {
        let stream = self.listener.accept_until_or(deadline, Some(self.process.as_raw_handle()))?;
        End::new(stream)
    }
}

pub(super) fn start_daemon(
    mut command: Command,
    log: File,
    variable: &str,
) -> io::Result<StartupPipe> {
    let name = random_name("start");
    let listener = Listener::bind(&name)?;
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\".into());
    command.current_dir(root).env(variable, &name);
    let standard = [null()?, log.try_clone()?, log];
    let ApartProcess { handle, is_bound } = start_apart(command, standard, false)?;
    Ok(StartupPipe { listener, process: handle, is_bound })
}

pub(super) type ReportPipe = Stream;

pub(super) fn report_pipe(value: &str) -> Option<ReportPipe> {
    let stream = connect(Path::new(value), PATIENCE).ok()?;
    let is_ours = other_end(&stream).is_ok_and(|client| client.is_ours());
    is_ours.then_some(stream)
}

#[derive(Debug)]
pub struct PipedProcess {
    pub input: End,
    pub output: End,
    pub is_bound: bool,
    process: OwnedHandle,
}

impl PipedProcess {
    pub fn start(command: Command) -> io::Result<PipedProcess> {
        let (input, stdin) = one_way(Flow::ToThem)?;
        let (output, stdout) = one_way(Flow::ToUs)?;
        let ApartProcess { handle: process, is_bound } =
            start_apart(command, [stdin, stdout, null()?], true)?;
        let (input, output) = (End::new(input)?, End::new(output)?);
        Ok(PipedProcess { input, output, is_bound, process })
    }

    pub fn kill(&mut self) {
        // SAFETY: the handle is open.
        unsafe { TerminateProcess(self.process.as_raw_handle(), jobs::KILLED) };
    }
}
