//! `acpctl service …`.

mod install;
mod status;
mod traces;
mod uninstall;

use std::env;

use acpd_client::Paths;

use crate::cli;
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::service::Service;
use crate::ui::Ui;

/// Runs a `service` command.
pub(super) fn service(command: cli::Service, door: Door, ui: &mut Ui) -> Result {
    if env::consts::OS == "windows" {
        let error = "there is no service on Windows";
        return Err(CommandError::usage(error).hint("every command that needs acpd starts it"));
    }
    let paths = Paths::discover()?;
    let service = Service::here(&paths)?;
    match command {
        cli::Service::Install { dry_run: true } => install::show(&service, &paths, ui),
        cli::Service::Install { dry_run: false } => install::install(&service, &paths, ui),
        cli::Service::Uninstall(args) => uninstall::uninstall(args, &service, &paths, door, ui),
        cli::Service::Status(json) => status::status(&service, &paths, json, ui),
        cli::Service::Logs(_) if !service.is_installed() => Err(status::not_installed()
            .hint("the log of a daemon that a client has started: `acpctl daemon logs`")),
        cli::Service::Logs(tail) => service.print_log(tail, ui),
    }
}
