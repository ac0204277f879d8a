//! Commands that are programs of their own, installed beside this one, so that no other command carries what they
//! need.

use std::ffi::OsString;
use std::process::Command;

use acpd_api::{ExitCode, Untrusted};
use acpd_client::beside;
use acpd_sys::process;
use clap::Args;

use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::text::text;

/// Arguments of a program beside this one, which reads them itself.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// `--help` shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) args: Vec<OsString>,
}

/// Replaces this process by that program. Returns only if that fails.
pub(crate) fn become_program(name: &str, args: &[OsString], door: Door) -> Result<ExitCode> {
    let program = beside(name);
    let mut command = Command::new(&program);
    command.args(args);
    if !door.spawn {
        command.arg("--no-spawn");
    }
    let error = process::become_program(&mut command);
    let text = text!(
        "cannot run `{}`: {}",
        Untrusted::from(program.to_string_lossy()),
        Untrusted::of(&error)
    );
    Err(CommandError::new(ExitCode::Error, text)
        .hint("it is installed beside `acpctl`: `cargo install acpctl`"))
}
