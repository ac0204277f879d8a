//! `acpctl completions`: scripts for shells.

use clap::Args;
use clap_complete::Shell;

use crate::complete::registration;
use crate::error::Result;
use crate::ui::Ui;

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = examples!(
    "\
Bash, in ~/.bashrc:                 source <(acpctl completions bash)
Zsh, in ~/.zshrc after compinit:    source <(acpctl completions zsh)
Fish, in ~/.config/fish/config.fish: acpctl completions fish | source
PowerShell, in $PROFILE:            acpctl completions powershell | Out-String | Invoke-Expression

Completion asks the running daemon for sessions, agents and questions; it never starts one.";
    "source <(acpctl completions bash)" => "Complete in this bash",
    "acpctl completions fish | source" => "Complete in this fish",
))]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

pub(super) fn completions(Completions { shell }: Completions, ui: &mut Ui) -> Result {
    Ok(ui.relay_bytes(&registration(&shell.to_string())?)?)
}
