//! Programs to start: their words, their environment, and why they do not start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::Signal;

/// The text that has these bytes ([`OsStr::as_encoded_bytes`]); `None` if none has.
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    Some(OsStr::from_bytes(bytes).to_owned())
}

/// Lets the command have nothing of our environment.
pub fn clear_environment(command: &mut Command) {
    command.env_clear();
}

/// Returns whether both names are of the same environment variable.
pub fn is_same_variable(one: &OsStr, other: &OsStr) -> bool {
    one == other
}

/// Returns the command that runs a line as the system's own shell does.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    command
}

/// The system's number of an error; of what the standard library or we refuse, the one of its kind; 0 if there is none.
pub fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidInput => Errno::EINVAL as i32,
        io::ErrorKind::PermissionDenied => Errno::EACCES as i32,
        io::ErrorKind::TimedOut => Errno::ETIMEDOUT as i32,
        _ => 0,
    })
}

/// Returns whether the system has refused to run a file because it is no program.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOEXEC as i32)
}

/// How a signal is called, like `SIGTERM`.
pub fn signal_name(number: i32) -> String {
    let name = Signal::try_from(number).map(Signal::as_str);
    name.map_or_else(|_| format!("SIG{number}"), str::to_owned)
}
