//! Arguments of `service`.

use clap::{Args, Subcommand};

use super::{Json, Tail};

#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Make acpd a service of yours: systemd, or launchd on macOS. A running acpd is taken over; agents and turns
    /// continue.
    Install {
        /// Print the files and the commands, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Take the service out again. What runs continues, as if the first command had started it.
    Uninstall(Uninstall),
    /// Show the service; exit with 3 if there is none.
    Status(Json),
    /// Print the log of the service.
    Logs(Tail),
}

/// Arguments of `service uninstall`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Uninstall {
    /// Stop acpd and every agent, and delete all that acpd has kept: every conversation, logs, configuration,
    /// completions; and what you have added to its units.
    #[arg(long)]
    pub(crate) purge: bool,
    /// Print what would be deleted, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, requires = "purge")]
    pub(crate) yes: bool,
}
