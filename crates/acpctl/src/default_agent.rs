//! The default agent if the configuration names none and several are installed: the user chooses
//! once, and can save the choice.

use std::collections::HashSet;
use std::{fs, io};

use acpd_api::{AgentInfo, AgentList, DaemonInfo, Empty, Status, StatusParams, Untrusted, method};
use acpd_client::{Connection, Paths};

use crate::confirm::{pick, yes};
use crate::daemon::{IN_USE, agent, reload};
use crate::error::{CommandError, Result};
use crate::programs::{BEGIN, SCHEMA, offer_schema};
use crate::text::{Text, text};
use crate::ui::Ui;

const DEMO: &str = "demo";

/// Returns the daemon's information, with the default agent of a directory.
pub(crate) fn daemon_for(cwd: &str, connection: &mut Connection) -> Result<DaemonInfo> {
    let params = StatusParams { cwd: Some(cwd.to_owned()), ..IN_USE };
    let mut status: Status = connection.call(method::STATUS, &params)?;
    if status.daemon.default_is_found {
        // This is answered once the environment of agents is known; before that, installed agents
        // may be missing.
        agent(connection, DEMO).ok();
        status = connection.call(method::STATUS, &params)?;
    }
    Ok(status.daemon)
}

/// Describes a default agent that is not configured or not a model.
pub(crate) fn note(daemon: &DaemonInfo) -> Option<Text> {
    let agent = &daemon.default_agent;
    if *agent == DEMO {
        let text = "`demo` is a built-in script, not a model. Real agents: acpctl agent ls --all";
        return Some(text.into());
    }
    daemon.default_is_found.then(|| {
        text!(
            "using {}, the first installed agent; choose another with `-a`, or set `default_agent` in the \
             configuration",
            agent
        )
    })
}

/// Asks the user if no agent is configured and several are installed.
pub(crate) fn ask_if_found(
    daemon: &DaemonInfo,
    connection: &mut Connection,
    ui: &mut Ui,
) -> Result<Option<String>> {
    if !daemon.default_is_found || !ui.can_ask() {
        return Ok(None);
    }
    let list: AgentList = connection.call(method::AGENT_LIST, &Empty {})?;
    let candidates = candidates(&list, daemon.default_agent.raw());
    if candidates.len() < 2 {
        return Ok(None);
    }
    let chosen = ask(&candidates, ui)?;
    if yes(ui, text!("make {} the default in the configuration? y/n > ", chosen))? {
        remember(chosen.raw(), ui)?;
    }
    Ok(Some(chosen.raw().to_owned()))
}

/// Returns tried and installed agents, the detected default first; of several agents for one
/// program, only the first.
fn candidates<'l>(list: &'l AgentList, default: &str) -> Vec<&'l AgentInfo> {
    let is_there =
        |agent: &&AgentInfo| agent.tried && agent.installed == Some(true) && agent.name != *DEMO;
    let mut agents: Vec<_> = list.agents.iter().filter(is_there).collect();
    agents.sort_by_key(|agent| agent.name != *default);
    let mut programs = HashSet::new();
    agents.retain(|agent| programs.insert(agent.command.first()));
    agents
}

fn ask<'l>(candidates: &[&'l AgentInfo], ui: &mut Ui) -> Result<&'l Untrusted> {
    ui.stop_spinning();
    ui.say("No agent is configured, and several are installed:");
    let labels = candidates.iter().map(|agent| text!("{} ({})", agent.name, agent.title));
    let prompt = text!("agent? 1-{} > ", candidates.len());
    let named = |answer: &str| candidates.iter().position(|agent| agent.name == *answer);
    Ok(&candidates[pick(ui, prompt, labels, named)?].name)
}

fn remember(agent: &str, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let file = paths.config_file();
    let failed = |error: io::Error| CommandError::file("write", &file, &error);
    fs::create_dir_all(&paths.config).map_err(failed)?;
    let before = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BEGIN.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    fs::write(&file, with_default(&before, agent)).map_err(failed)?;
    offer_schema(&file, &paths.config.join(SCHEMA));
    ui.say(text!("saved as `default_agent` in `{}`", file));
    reload(&paths, ui)
}

/// Inserts a default before every table, because a later key would belong to a table.
fn with_default(text: &str, agent: &str) -> String {
    let (schema, rest) = match text.strip_prefix(BEGIN) {
        Some(rest) => (BEGIN, rest),
        None => ("", text),
    };
    format!("{schema}default_agent = \"{agent}\"\n{rest}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_is_written_before_every_table() {
        assert_eq!(with_default("", "claude"), "default_agent = \"claude\"\n");
        let text = format!("{BEGIN}[daemon]\nnotify = false\n");
        let expected = format!("{BEGIN}default_agent = \"claude\"\n[daemon]\nnotify = false\n");
        assert_eq!(with_default(&text, "claude"), expected);
    }

    #[test]
    fn candidates_are_tried_installed_and_of_different_programs() {
        let agent = |name: &str, program: &str, tried: bool, installed: bool| {
            json!({"name": name, "title": name, "state": "stopped", "since": 0, "restarts": 0,
                "command": [program], "sessions": 0, "log": "/l", "tried": tried,
                "installed": installed})
        };
        let list = json!({"agents": [
            agent("amp", "amp-acp", false, true),
            agent("claude", "claude-agent-acp", true, false),
            agent("codex", "codex-acp", true, true),
            agent("copilot", "copilot", true, true),
            agent("demo", "acpd", true, true),
            agent("zedcodex", "codex-acp", true, true),
        ]});
        let list: AgentList = serde_json::from_value(list).unwrap();
        let names = |default| -> Vec<_> {
            candidates(&list, default).iter().map(|agent| agent.name.raw()).collect()
        };
        assert_eq!(names("copilot"), ["copilot", "codex"]);
    }
}
