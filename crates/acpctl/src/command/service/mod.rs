//! `acpctl service …`: acpd as a service of the user.

mod install;
mod status;
mod traces;
mod uninstall;

use std::env;

use acpd_client::Paths;
use clap::Subcommand;

use crate::args::Json;
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::log_file::Tail;
use crate::service::Service;
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum ServiceCommand {
    /// Install acpd as a user service (systemd; launchd on macOS). A running daemon, its agents and turns continue.
    #[command(after_long_help = examples!(
        "acpctl service install --dry-run" => "Show the files and the commands first",
        "acpctl service install" => "Start acpd at login from now on",
    ))]
    Install {
        /// Print the files and the commands, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove the service; the running daemon continues.
    #[command(after_long_help = examples!(
        "acpctl service uninstall" => "Remove the service; the running daemon continues",
        "acpctl service uninstall --purge --dry-run" =>
            "Show what removing all of acpd would delete",
    ))]
    Uninstall(uninstall::Uninstall),
    /// Show the service; exits with 3 if there is none.
    #[command(after_long_help = examples!(
        "acpctl service status" => "Check whether acpd is a service",
    ))]
    Status(Json),
    /// Print the log of the service.
    #[command(after_long_help = examples!(
        "acpctl service logs -f" => "Follow the log",
    ))]
    Logs(Tail),
}

pub(super) fn service(command: ServiceCommand, door: Door, ui: &mut Ui) -> Result {
    if env::consts::OS == "windows" {
        let error = "there is no service on Windows";
        return Err(CommandError::usage(error).hint("commands start acpd when they need it"));
    }
    let paths = Paths::discover()?;
    let service = Service::here(&paths)?;
    match command {
        ServiceCommand::Install { dry_run: true } => install::show(&service, &paths, ui),
        ServiceCommand::Install { dry_run: false } => install::install(&service, &paths, ui),
        ServiceCommand::Uninstall(args) => uninstall::uninstall(args, &service, &paths, door, ui),
        ServiceCommand::Status(json) => status::status(&service, &paths, json, ui),
        ServiceCommand::Logs(_) if !service.is_installed() => Err(status::not_installed()
            .hint("the log of a daemon that a client started: `acpctl daemon logs`")),
        ServiceCommand::Logs(tail) => service.print_log(tail, ui),
    }
}
