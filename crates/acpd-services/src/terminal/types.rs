//! Requests for terminals and their answers, with their limits.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

use acpd_sys::process::{ExitKind, signal_name};

/// Terminals of one owner at a time.
pub const MOST_OF_OWNER: usize = 64;
/// Terminals of all owners at a time, those included that are released and not gone yet.
pub const MOST_IN_ALL: usize = 256;
/// Bytes of output that are kept if the request does not say.
pub const USUAL_OUTPUT: u64 = 1 << 20;
/// Maximum number of kept output bytes, for any request.
pub const MOST_OUTPUT: u64 = 2 << 20;

/// Reaper of this process's children. A reaper of unknown children must leave these alone.
pub trait Children: Send + Sync {
    /// Starts a child that is not reaped before one of the other two is called for it.
    fn start(&self, command: &mut Command) -> io::Result<Child>;
    /// Kills and reaps a child that was just started and cannot be used.
    fn discard(&self, child: Child);
    /// Reaps a child that has ended.
    fn reap(&self, pid: u32);
}

#[derive(Debug, Clone)]
pub struct CreateTerminal {
    /// How it will be called; unique among all.
    pub id: String,
    /// The agent process whose terminal it is.
    pub owner: u64,
    /// A program; or, if there are no arguments and no program of this name, and there is white space
    /// in it, a line for the system's shell (`sh -c`): that is what several agents send.
    pub command: String,
    pub args: Vec<String>,
    /// The environment that the agent has as well.
    pub base_env: Vec<(OsString, OsString)>,
    /// Additional variables of the request.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Bytes of output to keep, the last ones; [`USUAL_OUTPUT`] if it is not said, [`MOST_OUTPUT`] at
    /// most.
    pub output_byte_limit: Option<u64>,
    /// `ACPD_HOST` of its processes: unique among all that acpd has ever started, its agents too.
    pub marker: String,
}

/// How a command ended (`TerminalExitStatus`). Nothing is known if the system did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code, if the process exited.
    pub code: Option<u32>,
    /// The name of the signal that ended it, like `SIGTERM`.
    pub signal: Option<String>,
}

/// Output of a command so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Last bytes as text; invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// Set if earlier output was cut off.
    pub truncated: bool,
    /// How it ended, if it did. All that it wrote before is in the text then.
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
