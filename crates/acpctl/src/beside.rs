//! Commands that are programs of their own, installed beside this one, so that no other command carries what they
//! need.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use acpd_api::{ExitCode, Untrusted};

use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::text::text;

/// Replaces this process by that program. Returns only if that fails.
pub(crate) fn become_program(name: &str, args: &[OsString], door: Door) -> Result<ExitCode> {
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().map(|exe| exe.with_file_name(&name));
    let program = beside.ok().filter(|exe| exe.is_file()).unwrap_or_else(|| name.into());
    let mut command = Command::new(&program);
    command.args(args);
    if !door.spawn {
        command.arg("--no-spawn");
    }
    let error = command.exec();
    let text = text!(
        "cannot run `{}`: {}",
        Untrusted::from(program.to_string_lossy()),
        Untrusted::of(&error)
    );
    Err(CommandError::new(ExitCode::Error, text)
        .hint("it is installed beside `acpctl`: `cargo install acpctl`"))
}
