//! `acpctl mcp` and `acpctl web` are programs of their own, installed next to acpctl.

use std::ffi::OsString;

use clap::Args;

use crate::door::Door;
use crate::error::CommandError;
use crate::programs;

/// Arguments that the program itself reads.
#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
    /// `--help` shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    args: Vec<OsString>,
}

/// Becomes a program that is installed with this one, so that no other verb carries what it needs.
pub(super) fn become_program(
    name: &str,
    ProgramArgs { args }: &ProgramArgs,
    door: Door,
) -> CommandError {
    let mut command = std::process::Command::new(acpd_client::beside(name));
    command.args(args).args((!door.spawn).then_some("--no-spawn"));
    let hint = "install it: `cargo install acpctl`";
    programs::become_program(&mut command).hint(hint)
}
