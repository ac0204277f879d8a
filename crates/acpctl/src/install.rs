//! Installs an agent by the command that acpd knows for it: only after a yes, in this terminal, with its own words shown.

use std::process::Command;

use acpd_api::{AgentInfo, ExitCode, Untrusted};

use crate::confirm::{left, yes};
use crate::error::{CommandError, Result};
use crate::text::text;
use crate::ui::Ui;

/// Installs the agent, after a yes.
pub(crate) fn install(info: &AgentInfo, is_sure: bool, ui: &mut Ui) -> Result {
    if info.installed == Some(true) {
        ui.say(text!("{} is installed", info.name));
        return Ok(());
    }
    let Some(command) = &info.install else {
        let error = text!("acpd knows no command that installs `{}`", info.name);
        let hint = text!("install it as its makers say, then: acpctl agent show {}", info.name);
        return Err(CommandError::new(ExitCode::NotFound, error).hint(hint));
    };
    if !is_sure {
        if !ui.can_ask() {
            let error = text!("an installation needs confirmation: it runs `{}`", command);
            return Err(CommandError::usage(error).hint("add `--yes`"));
        }
        if !yes(ui, text!("install {} with `{}`? y/n > ", info.name, command))? {
            return Err(left());
        }
    }
    let mut words = command.raw().split_whitespace();
    let program = words.next().unwrap_or_default();
    ui.finish()?;
    let status = Command::new(program).args(words).status();
    let status = status.map_err(|error| CommandError::file("run", program.as_ref(), &error))?;
    if !status.success() {
        let error = text!("`{}` failed: {}", command, Untrusted::of(status));
        return Err(CommandError::new(ExitCode::Error, error));
    }
    ui.say(text!("{} is installed", info.name));
    Ok(())
}

/// Returns whether the agent is not there and acpd knows how to install it.
pub(crate) fn can_install(info: &AgentInfo) -> bool {
    info.installed == Some(false) && info.install.is_some()
}
