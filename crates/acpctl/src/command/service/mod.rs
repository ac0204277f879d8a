//! `acpctl service …`.

mod install;
mod status;
mod traces;
mod uninstall;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use acpd_client::Paths;

use crate::cli::{self, Tail};
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::log_file;
use crate::service::{self, Service};
use crate::ui::Ui;

/// Runs a `service` command.
pub(super) fn service(command: cli::Service, door: Door, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let service = Service::here(&paths)?;
    match command {
        cli::Service::Install { dry_run: true } => install::show(&service, ui),
        cli::Service::Install { dry_run: false } => install::install(&service, &paths, ui),
        cli::Service::Uninstall(args) => uninstall::uninstall(args, &service, &paths, door, ui),
        cli::Service::Status(json) => status::status(&service, &paths, json, ui),
        cli::Service::Logs(tail) => logs(&service, tail, ui),
    }
}

/// Prints what the manager has kept of the daemon's log.
fn logs(service: &Service, tail: Tail, ui: &mut Ui) -> Result {
    let Some(mut command) = service.log_command(tail.follow, tail.lines) else {
        return log_file::print(&service::log_file()?, tail, ui);
    };
    let program = command.get_program().to_owned();
    let failed = |error| CommandError::file("run", program.as_ref(), &error);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut lines = child.stdout.take().map(BufReader::new);
    let mut line = Vec::new();
    while let Some(lines) = &mut lines
        && lines.read_until(b'\n', &mut line).map_err(failed)? > 0
    {
        ui.relay_bytes(&std::mem::take(&mut line))?;
        ui.flush()?;
    }
    // What it could not do it has said itself.
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(CommandError::told()) }
}
