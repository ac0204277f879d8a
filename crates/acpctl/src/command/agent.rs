//! `acpctl agent …`.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use acpd_api::{
    AgentInfo, AgentList, AgentRef, AgentState, Empty, ExitCode, McpInfo, RestartParams, Untrusted,
    escape, method,
};
use acpd_client::daemon_exe;
use anstyle::Style;
use serde::Serialize;

use super::{Door, auth, log_file};
use crate::cli::{Agent, Json};
use crate::error::{CommandError, Result};
use crate::human;
use crate::live::Live;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, RED, YELLOW};
use crate::table::{Cell, Table};
use crate::text::{Text, text};
use crate::ui::Ui;

/// Columns of a reason in the table: it may hold a whole `PATH`.
const REASON: usize = 60;

/// Runs an `agent` command.
pub(super) fn agent(command: Agent, door: Door, ui: &mut Ui) -> Result {
    match command {
        Agent::Ls(json) => {
            let list: AgentList = door.connect()?.call(method::AGENT_LIST, &Empty {})?;
            if json.json {
                return Ok(ui.json(&list)?);
            }
            Ok(ui.print(table(&list.agents, human::now(), ui.out_paint(), ui.out_width()))?)
        }
        Agent::Show { agent, json } => {
            let info = ask(door, method::AGENT_SHOW, agent)?;
            if json.json {
                return Ok(ui.json(&info)?);
            }
            Ok(ui.print(card(&info, ui.out_paint()))?)
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
    // It only comes back with an error.
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
    let line = text!("{} is {}{}", info.name, word(info.state), reason);
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

/// Agents as a table.
pub(super) fn table<'a>(
    agents: impl IntoIterator<Item = &'a AgentInfo>,
    now: u64,
    paint: Paint,
    width: Option<usize>,
) -> Text {
    let titles =
        ["AGENT", "STATE", "SINCE", "PID", "MEMORY", "PROCS", "RESTARTS", "SESSIONS", "REASON"];
    let mut table = Table::new(titles);
    for agent in agents {
        table.row([
            Cell::new(&agent.name, BOLD),
            state_cell(agent),
            human::ago(agent.since, now).into(),
            agent.pid.map(|pid| pids(pid, agent, " +", "")).unwrap_or_default().into(),
            agent.rss.map(human::bytes).unwrap_or_default().into(),
            text!("{}", agent.processes).into(),
            text!("{}", agent.restarts).into(),
            text!("{}", agent.sessions).into(),
            // `agent show` tells the whole of it.
            text!("{}", reason(agent)).cut(REASON).into(),
        ]);
    }
    table.render(paint, width)
}

/// The state; of an agent that wants a login, that, also while it does not run.
fn state_cell(agent: &AgentInfo) -> Cell {
    match agent.state {
        AgentState::Stopped | AgentState::NeedsAuth if agent.auth.state.wants_login() => {
            Cell::new(auth::word(agent.auth.state), YELLOW)
        }
        state => Cell::new(word(state), style(state)),
    }
}

/// Why it is in its state; where a login is all that is missing, the way to it. An agent that was
/// started again is ready until it is asked for something.
fn reason(agent: &AgentInfo) -> Option<&Untrusted> {
    let (reason, hint) = (agent.reason.as_ref(), agent.auth.hint.as_ref());
    match agent.state {
        AgentState::Stopped | AgentState::NeedsAuth => hint.or(reason),
        _ => reason.or(hint),
    }
}

fn card(agent: &AgentInfo, paint: Paint) -> Text {
    let state = paint.apply(style(agent.state), word(agent.state));
    let command = agent.command.iter().map(Text::from);
    let mut rows = vec![
        ("agent", text!("{} ({})", agent.name, agent.title)),
        ("state", text!("{} since {}", state, human::clock(agent.since))),
        ("command", Text::join(command, " ")),
        ("sessions", text!("{}", agent.sessions)),
        ("restarts", text!("{}", agent.restarts)),
        ("log", (&agent.log).into()),
    ];
    if agent.since == 0 {
        rows[1].1 = state;
    }
    let mut add = |at: usize, key, value: Option<Text>| {
        rows.splice(at..at, value.map(|value| (key, value)));
    };
    add(3, "memory", agent.rss.map(|bytes| memory(bytes, agent.processes)));
    add(3, "pid", agent.pid.map(|pid| pids(pid, agent, " and ", " more")));
    add(3, "version", agent.version.as_ref().map(Text::from));
    add(2, "login", Some(auth::sentence(&agent.auth)));
    add(2, "reason", agent.reason.as_ref().map(Text::from));
    rows.extend(agent.mcp.iter().map(|server| ("mcp", mcp_line(server))));
    let hint = agent.hint.as_ref().or(agent.auth.hint.as_ref());
    rows.extend(hint.map(|hint| ("hint", Text::from(hint))));
    if !agent.tried {
        rows.push(("note", "this launch line has not been tried by acpd's authors".into()));
    }
    key_values(&rows, paint)
}

/// The pid that is shown, and how many there are beside it.
fn pids(pid: u32, agent: &AgentInfo, and: &'static str, more: &'static str) -> Text {
    match agent.other_pids.len() {
        0 => text!("{}", pid),
        others => text!("{}{}{}{}", pid, and, others, more),
    }
}

/// What the whole tree takes, or all of them.
fn memory(bytes: u64, processes: Option<u32>) -> Text {
    match processes {
        None => human::bytes(bytes),
        Some(1) => text!("{} in 1 process", human::bytes(bytes)),
        Some(count) => text!("{} in {} processes", human::bytes(bytes), count),
    }
}

/// An MCP server of the configuration, and whether the agent gets it.
fn mcp_line(server: &McpInfo) -> Text {
    let place = match server.workspace.as_slice() {
        [] => Text::new(),
        globs => text!(" in {}", Text::join(globs.iter().map(Text::from), ", ")),
    };
    let left_out = server.left_out.as_ref().map(|why| text!(": left out, {}", why));
    text!("{} ({}){}{}", server.name, server.kind.word(), place, left_out)
}

/// Lines of `key  value`.
pub(super) fn key_values(rows: &[(&'static str, Text)], paint: Paint) -> Text {
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let line = |(key, value): &(&'static str, Text)| {
        let gap = Text::repeated(" ", width - key.len());
        text!("{}{}  {}\n", paint.apply(DIM, *key), gap, value)
    };
    rows.iter().map(line).collect()
}

fn word(state: AgentState) -> &'static str {
    match state {
        AgentState::Stopped => "stopped",
        AgentState::Starting => "starting",
        AgentState::Initializing => "initializing",
        AgentState::NeedsAuth => "needs login",
        AgentState::Ready => "ready",
        AgentState::Stopping => "stopping",
        AgentState::Backoff => "backoff",
        AgentState::Failed => "failed",
    }
}

fn style(state: AgentState) -> Style {
    match state {
        AgentState::Stopped => DIM,
        AgentState::Ready => GREEN,
        AgentState::Starting | AgentState::Initializing | AgentState::Stopping => CYAN,
        AgentState::NeedsAuth | AgentState::Backoff => YELLOW,
        AgentState::Failed => RED,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_with_a_process_for_each_session_tells_how_many_there_are() {
        let agent: AgentInfo = serde_json::from_value(json!({
            "name": "copilot", "title": "Copilot", "state": "ready", "since": 0, "pid": 42,
            "otherPids": [43, 44], "rss": 300_000_000, "processes": 9, "restarts": 0,
            "command": ["copilot", "--acp"], "sessions": 3, "log": "/l", "tried": true,
        }))
        .unwrap();
        insta::assert_snapshot!(card(&agent, Paint::plain()), @"
        agent     copilot (Copilot)
        state     ready
        login     not known
        command   copilot --acp
        pid       42 and 2 more
        memory    286 MB in 9 processes
        sessions  3
        restarts  0
        log       /l
        ");
        insta::assert_snapshot!(table([&agent], 0, Paint::plain(), None), @"
        AGENT    STATE  SINCE  PID    MEMORY  PROCS  RESTARTS  SESSIONS  REASON
        copilot  ready  -      42 +2  286 MB  9      0         3         -
        ");
    }

    #[test]
    fn the_card_of_an_agent_that_wants_a_login_tells_the_way_to_it() {
        let agent: AgentInfo = serde_json::from_value(json!({
            "name": "copilot", "title": "Copilot", "state": "needs_auth", "since": 0,
            "reason": "Authentication required", "restarts": 0, "command": ["copilot", "--acp"],
            "sessions": 0, "log": "/l", "tried": true,
            "auth": {"state": "needs_login", "since": 0,
                "source": {"kind": "refused", "method": "session/new"},
                "hint": "`acpctl auth login copilot`, then try again"},
        }))
        .unwrap();
        insta::assert_snapshot!(card(&agent, Paint::plain()), @"
        agent     copilot (Copilot)
        state     needs login
        reason    Authentication required
        login     needs login (`session/new` was refused)
        command   copilot --acp
        sessions  0
        restarts  0
        log       /l
        hint      `acpctl auth login copilot`, then try again
        ");
    }
}
