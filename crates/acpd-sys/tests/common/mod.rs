//! A test program as its own helper process: an ignored test with a part to play.

use std::process::Command;

/// Names the part that a helper process plays.
pub(crate) const PART: &str = "ACPD_SYS_TEST_PART";

/// The part to play, if this process is a helper.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Arguments that make this program run the one ignored test `helper`.
pub(crate) const HELPER_ARGS: [&str; 4] = ["--exact", "helper", "--ignored", "--nocapture"];

/// A helper process that plays a part.
#[allow(dead_code, reason = "not every test program starts its helpers by hand")]
pub(crate) fn helper(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(HELPER_ARGS).env(PART, part);
    command
}
