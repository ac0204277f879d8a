//! Options that many verbs have.

use clap::{Args, ValueEnum};

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Fail instead of starting the daemon.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_spawn: bool,
    /// Colour the output: auto, always or never [default: auto].
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: When,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// Machine-readable output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
