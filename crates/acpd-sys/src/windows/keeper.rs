//! Keepers of commands. There are none on Windows: a Job holds all that a command starts.

use std::io;
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::process::{ExitKind, ProcessId};

/// The argument that makes a program a keeper on other systems.
pub const ARGUMENT: &str = "keep";

/// Ends the tree of a command when all copies of it and the connection are dropped.
pub type Lease = OwnedHandle;

/// Our end of the connection to a keeper. There is none.
#[derive(Debug)]
pub enum Control {}

/// Returns `None`: a command needs no keeper here.
pub fn wrap(_exe: &Path, _inner: &Command) -> io::Result<Option<(Command, Control)>> {
    Ok(None)
}

impl Control {
    pub fn begin(&mut self) -> io::Result<ProcessId> {
        match *self {}
    }

    pub fn wait(&mut self) -> Option<ExitKind> {
        match *self {}
    }

    pub fn lease(&self) -> io::Result<Lease> {
        match *self {}
    }
}

/// Fails: a keeper is of no use here.
pub fn run() -> ExitCode {
    ExitCode::FAILURE
}

pub fn dismiss(_keeper: ProcessId) {}
