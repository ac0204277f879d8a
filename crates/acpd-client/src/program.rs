//! The daemon's program, and the reason why a service manager cannot start it.
//!
//! A service manager accepts connections for a daemon that it cannot start, so clients would wait
//! for nothing. `acpd check` reports the reason.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use acpd_sys::paths::{Paths, beside};
use acpd_sys::wait::End;

/// Longest wait for the report.
const LIMIT: Duration = Duration::from_secs(3);
/// Most bytes of the report.
const MOST: usize = 64 << 10;

/// The program `acpd`: `$ACPD_EXE`, else the one next to this program, else the one in `PATH`.
pub fn daemon_exe() -> PathBuf {
    let given = env::var_os("ACPD_EXE").filter(|exe| !exe.is_empty()).map(PathBuf::from);
    given.unwrap_or_else(|| beside("acpd"))
}

/// Returns what keeps a daemon from starting with these directories; `None` if nothing does, or the
/// program does not report in time.
pub(crate) fn obstacle(paths: &Paths) -> Option<String> {
    let mut command = Command::new(daemon_exe());
    command
        .arg("check")
        .env("ACPD_RUNTIME_DIR", &paths.runtime)
        .env("ACPD_STATE_DIR", &paths.state)
        .env("ACPD_CONFIG_DIR", &paths.config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let stderr = child.stderr.take().map(End::new);
    let end = Instant::now() + LIMIT;
    let said = stderr.map(|stderr| stderr?.read_until(end, MOST, |_| false));
    child.kill().ok();
    child.wait().ok();
    let said = String::from_utf8(said?.ok()?).ok()?;
    program_error(&said).map(|(reason, _)| reason.to_owned())
}

/// Reason and hint of an error that a program of acpd wrote to stderr.
pub fn program_error(said: &str) -> Option<(&str, Option<&str>)> {
    said.trim().strip_prefix("error: ").map(with_hint)
}

pub(crate) fn with_hint(words: &str) -> (&str, Option<&str>) {
    match words.split_once("\n\nhint: ") {
        Some((reason, hint)) => (reason, Some(hint.trim_end())),
        None => (words, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_what_the_program_says_without_its_hint() {
        let with_hint = program_error("error: no room\n\nhint: make some\n");
        assert_eq!(with_hint, Some(("no room", Some("make some"))));
        assert_eq!(program_error("error: no room\n"), Some(("no room", None)));
        assert_eq!(program_error(""), None);
        assert_eq!(program_error("thread panicked"), None);
    }
}
