//! Programs to start: their words, their environment, and why they do not start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::process::CommandExt as _;
use std::process::Command;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BAD_EXE_FORMAT, ERROR_FILE_NOT_FOUND, ERROR_INVALID_PARAMETER,
    ERROR_SEM_TIMEOUT,
};

/// A variable that programs cannot do without: libraries of the system look for others by it.
const SYSTEM_ROOT: &str = "SystemRoot";

/// The text that has these bytes ([`OsStr::as_encoded_bytes`]); `None` if none has. They are UTF-8, but for halves of
/// characters that stand alone, which are encoded as if they were characters.
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    let (mut text, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let whole = match str::from_utf8(rest) {
            Ok(whole) => whole,
            Err(error) => str::from_utf8(&rest[..error.valid_up_to()]).ok()?,
        };
        text.extend(whole.encode_utf16());
        rest = match &rest[whole.len()..] {
            [] => &[],
            [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, rest @ ..] => {
                text.push(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f));
                rest
            }
            _ => return None,
        };
    }
    Some(OsString::from_wide(&text))
}

/// Lets the command have nothing of our environment but what it cannot do without.
pub fn clear_environment(command: &mut Command) {
    command.env_clear();
    if let Some(root) = std::env::var_os(SYSTEM_ROOT) {
        command.env(SYSTEM_ROOT, root);
    }
}

/// Returns whether both names are of the same environment variable.
pub fn is_same_variable(one: &OsStr, other: &OsStr) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Returns the command that runs a line as the system's own shell does.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd.exe");
    // cmd.exe takes the line as it is, between the first quotation mark and the last one.
    command.args(["/d", "/s", "/c"]).raw_arg(format!("\"{line}\""));
    command
}

/// The system's number of an error; of what the standard library or we refuse, the one of its kind; 0 if there is none.
pub fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidInput => ERROR_INVALID_PARAMETER as i32,
        io::ErrorKind::PermissionDenied => ERROR_ACCESS_DENIED as i32,
        io::ErrorKind::TimedOut => ERROR_SEM_TIMEOUT as i32,
        // The library looks for the program itself.
        io::ErrorKind::NotFound => ERROR_FILE_NOT_FOUND as i32,
        _ => 0,
    })
}

/// Returns whether the system has refused to run a file because it is no program.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_BAD_EXE_FORMAT as i32)
}

/// How a signal is called: there are none.
pub fn signal_name(number: i32) -> String {
    format!("SIG{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_out_of_its_bytes() {
        for wide in [&[][..], &[0x41, 0xe4, 0xd83d, 0xde00], &[0x41, 0xd800, 0x42, 0xdfff]] {
            let text = OsString::from_wide(wide);
            assert_eq!(os_string(text.as_encoded_bytes()), Some(text));
        }
        assert_eq!(os_string(b"a\xff"), None);
        assert_eq!(os_string(b"a\xed\x9f"), None);
    }
}
