//! `acpctl man`: the manual pages of a package, from the definition of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::error::Result;

/// Writes `acpctl.1`, and `acpctl-VERB.1` for each command.
pub(super) fn man(dir: &Path) -> Result<()> {
    Ok(clap_mangen::generate_to(Cli::command(), dir)?)
}
