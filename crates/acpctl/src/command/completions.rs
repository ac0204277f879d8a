//! `acpctl completions`.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::error::Result;
use crate::ui::Ui;

/// Prints the completion script.
pub(super) fn completions(shell: Shell, ui: &mut Ui) -> Result {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "acpctl", &mut script);
    Ok(ui.relay_bytes(&script)?)
}
