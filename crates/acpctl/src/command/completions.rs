//! `acpctl completions`.

use clap_complete::Shell;

use crate::complete::registration;
use crate::error::Result;
use crate::ui::Ui;

/// Prints what makes a shell complete.
pub(super) fn completions(shell: Shell, ui: &mut Ui) -> Result {
    Ok(ui.relay_bytes(&registration(&shell.to_string())?)?)
}
