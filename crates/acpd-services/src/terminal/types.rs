//! Requests for terminals and their answers, with their limits.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

use acpd_sys::process::{ExitKind, signal_name};
use tokio::sync::watch;

/// Terminals of one owner at a time.
pub const MOST_OF_OWNER: usize = 64;
/// Terminals of all owners at a time, including released ones that still end.
pub const MOST_IN_ALL: usize = 256;
/// Bytes of output kept by default.
pub const USUAL_OUTPUT: u64 = 1 << 20;
/// Bytes of output kept at most.
pub const MOST_OUTPUT: u64 = 2 << 20;

/// Closed when nothing of a tree is left. Nothing is ever sent.
pub(super) type Gone = watch::Receiver<()>;

/// Reaper of this process's children. A reaper of unknown children must leave these alone.
pub trait Children: Send + Sync {
    /// Starts a child that is reaped by one of the other two methods only.
    fn start(&self, command: &mut Command) -> io::Result<Child>;
    /// Kills and reaps a child that was just started and cannot be used.
    fn discard(&self, child: Child);
    fn reap(&self, pid: u32);
}

#[derive(Debug, Clone)]
pub struct CreateTerminal {
    /// Unique among all terminals.
    pub id: String,
    pub owner: u64,
    /// A program. Several agents send a line for the system's shell (`sh -c`) instead: it has no
    /// arguments, contains white space, and is not the name of a program.
    pub command: String,
    pub args: Vec<String>,
    /// The agent's environment.
    pub base_env: Vec<(OsString, OsString)>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Bytes of output to keep; [`USUAL_OUTPUT`] by default, [`MOST_OUTPUT`] at most.
    pub output_byte_limit: Option<u64>,
    /// `ACPD_HOST` of its processes: unique among all that acpd ever starts, agents too.
    pub marker: String,
}

/// Exit of a command (`TerminalExitStatus`); empty if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<u32>,
    /// A name like `SIGTERM`.
    pub signal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Last bytes as text; invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    pub truncated: bool,
    /// Set once the command has ended; the text then has all output from before.
    pub exit: Option<Exit>,
}

impl From<ExitKind> for Exit {
    fn from(exit: ExitKind) -> Exit {
        match exit {
            ExitKind::Code(code) => Exit { code: Some(code.cast_unsigned()), signal: None },
            ExitKind::Signal(number) => Exit { code: None, signal: Some(signal_name(number)) },
        }
    }
}
