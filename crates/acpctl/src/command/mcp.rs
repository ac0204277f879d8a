//! `acpctl mcp`: becomes the MCP server, which is a program of its own.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use acpd_api::{ExitCode, Untrusted};

use crate::cli;
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::text::text;

/// Replaces this process by the server. Returns only if that fails.
pub(super) fn mcp(args: &cli::Mcp, door: Door) -> Result<ExitCode> {
    let name = format!("acpctl-mcp{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().map(|exe| exe.with_file_name(&name));
    let program = beside.ok().filter(|exe| exe.is_file()).unwrap_or_else(|| name.into());
    let mut command = Command::new(&program);
    command.args(&args.args);
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
