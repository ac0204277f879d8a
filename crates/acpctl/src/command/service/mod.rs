//! `acpctl service …`.

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
    /// Make acpd a service of yours: systemd, or launchd on macOS. A running acpd is taken over; agents and turns
    /// continue.
    #[command(after_long_help = examples!(
        "acpctl service install --dry-run" => "See the files and the commands first",
        "acpctl service install" => "Have the system start acpd from now on",
    ))]
    Install {
        /// Print the files and the commands, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Take the service out again. What runs continues, as if the first command had started it.
    #[command(after_long_help = examples!(
        "acpctl service uninstall" => "Take the service out; what runs goes on",
        "acpctl service uninstall --purge --dry-run" =>
            "See what would be deleted, if all of acpd went",
    ))]
    Uninstall(uninstall::Uninstall),
    /// Show the service; exit with 3 if there is none.
    #[command(after_long_help = examples!(
        "acpctl service status" => "See whether the system starts acpd",
    ))]
    Status(Json),
    /// Print the log of the service.
    #[command(after_long_help = examples!(
        "acpctl service logs -f" => "Follow what the service writes",
    ))]
    Logs(Tail),
}

/// Runs a `service` command.
pub(super) fn service(command: ServiceCommand, door: Door, ui: &mut Ui) -> Result {
    if env::consts::OS == "windows" {
        let error = "there is no service on Windows";
        return Err(CommandError::usage(error).hint("every command that needs acpd starts it"));
    }
    let paths = Paths::discover()?;
    let service = Service::here(&paths)?;
    match command {
        ServiceCommand::Install { dry_run: true } => install::show(&service, &paths, ui),
        ServiceCommand::Install { dry_run: false } => install::install(&service, &paths, ui),
        ServiceCommand::Uninstall(args) => uninstall::uninstall(args, &service, &paths, door, ui),
        ServiceCommand::Status(json) => status::status(&service, &paths, json, ui),
        ServiceCommand::Logs(_) if !service.is_installed() => Err(status::not_installed()
            .hint("the log of a daemon that a client has started: `acpctl daemon logs`")),
        ServiceCommand::Logs(tail) => service.print_log(tail, ui),
    }
}
