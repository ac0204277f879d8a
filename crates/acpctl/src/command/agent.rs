//! `acpctl agent …`.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use acpd_api::{
    AgentInfo, AgentList, AgentRef, AgentState, Empty, ExitCode, RestartParams, escape, method,
};
use acpd_client::daemon_exe;
use serde::Serialize;

use crate::cli::{Agent, Json};
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::text::{Text, text};
use crate::ui::Ui;
use crate::{human, info, log_file};

/// Runs an `agent` command.
pub(super) fn agent(command: Agent, door: Door, ui: &mut Ui) -> Result {
    match command {
        Agent::Ls(json) => {
            let list: AgentList = door.connect()?.call(method::AGENT_LIST, &Empty {})?;
            if json.json {
                return Ok(ui.json(&list)?);
            }
            Ok(ui.print(info::agent::table(
                &list.agents,
                human::now(),
                ui.out_paint(),
                ui.out_width(),
            ))?)
        }
        Agent::Show { agent, json } => {
            let info = ask(door, method::AGENT_SHOW, agent)?;
            if json.json {
                return Ok(ui.json(&info)?);
            }
            Ok(ui.print(info::agent::card(&info, ui.out_paint()))?)
        }
        Agent::Discover(json) => discover(json),
        Agent::Start { agent } => {
            let doing = text!("starting {}", escape::one_line(&agent));
            change(method::AGENT_START, doing, &AgentRef { agent }, door, ui)
        }
        Agent::Stop { agent } => {
            let doing = text!("stopping {}", escape::one_line(&agent));
            change(method::AGENT_STOP, doing, &AgentRef { agent }, door, ui)
        }
        Agent::Restart { agent, force } => {
            let doing = text!("restarting {}", escape::one_line(&agent));
            let params = RestartParams { agent, force };
            change(method::AGENT_RESTART, doing, &params, door, ui)
        }
        Agent::Logs { agent, tail } => {
            let info = ask(door, method::AGENT_SHOW, agent)?;
            log_file::print(Path::new(info.log.raw()), tail, ui)
        }
    }
}

/// Becomes `acpd discover`: agents are asked in the environment of this terminal, not in the daemon's.
fn discover(json: Json) -> Result {
    let exe = daemon_exe();
    let mut command = Command::new(&exe);
    command.arg("discover").args(json.json.then_some("--json"));
    // `exec` only returns with an error.
    let error = command.exec();
    Err(CommandError::file("run", &exe, &error))
}

fn ask(door: Door, method: &str, agent: String) -> Result<AgentInfo> {
    Ok(door.connect()?.call(method, &AgentRef { agent })?)
}

fn change(method: &str, doing: Text, params: &impl Serialize, door: Door, ui: &mut Ui) -> Result {
    ui.spin(doing);
    let mut live = Live::new(door.single_link()?)?;
    let info: AgentInfo = live.call(ui, method, params)?;
    ui.stop_spinning();
    let reason = info.reason.as_ref().map(|reason| text!(": {}", reason));
    let line = text!("{} is {}{}", info.name, info::agent::word(info.state), reason);
    match info.state {
        AgentState::Failed => {
            let hint = info.hint.as_ref().map(Text::from);
            let look = || text!("look into `acpctl agent logs {}`", info.name);
            Err(CommandError::new(ExitCode::Error, line).hint(hint.unwrap_or_else(look)))
        }
        AgentState::NeedsAuth => Err(CommandError::new(ExitCode::NeedsLogin, line)
            .hint(text!("`acpctl auth login {}`", info.name))),
        _ => {
            ui.say(line);
            Ok(())
        }
    }
}
