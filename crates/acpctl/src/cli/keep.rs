//! Arguments of `backup`, `restore` and `gc`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Json;

/// Arguments of `backup`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The file holds everything that agents and you have said, and tokens that clients gave for MCP servers: it is closed \
to others, and should stay so. A backup that is there under that name is replaced once the new one is whole.")]
pub(crate) struct Backup {
    /// Where to write it.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
acpd is stopped with its agents before, and started again after it. The journal that was there stays beside the new one, \
as acpd-before-restore-N.db, until you delete it.")]
pub(crate) struct Restore {
    /// The backup.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Cut off turns that run, too.
    #[arg(long, requires = "yes")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Arguments of `gc`.
#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = "\
The limits are those of `[retention]` and `[[workspace]]` in the configuration; acpd itself looks every hour whether something \
is over them. A session in which something runs, waits or asks, and one that somebody has open, stays. What is deleted comes \
back with `acpctl session undo`, for as long as `keep_deleted` says.")]
pub(crate) struct Gc {
    /// Show what would be deleted, and delete nothing.
    #[arg(long, conflicts_with_all = ["yes", "now"])]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Delete it for good: `session undo` does not bring it back, and its room is free soon.
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}
