//! `acpctl agent …`: agents, their state and environment.

use std::path::Path;

use acpd_api::{
    AgentInfo, AgentList, AgentState, Empty, ExitCode, LoginShellInfo, RestartParams, Untrusted,
    VariableInfo, escape, method,
};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::args::Json;
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::log_file::Tail;
use crate::programs::{self, become_program};
use crate::text::{BOLD, Role, Table, Text, text};
use crate::ui::Ui;
use crate::{daemon, human, info, install, log_file};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Agent {
    /// List installed agents and agents with sessions.
    #[command(alias = "list")]
    #[command(after_long_help = examples!(
        "acpctl agent ls" => "List installed agents",
        "acpctl agent ls --all" => "List the others too, with how to install them",
    ))]
    Ls {
        /// Also list known agents that are not installed, and how to install them.
        #[arg(short = 'A', long)]
        all: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Show one agent.
    #[command(after_long_help = examples!(
        "acpctl agent show claude" => "Show its command and its state",
    ))]
    Show(OneAgent),
    /// Show the environment of an agent and where each variable comes from, without secrets.
    #[command(after_long_help = examples!(
        "acpctl agent env claude" => "Show its variables and their sources",
    ))]
    Env(OneAgent),
    /// Find installed agents, ask what each can do, and suggest a configuration.
    #[command(after_long_help = examples!(
        "acpctl agent discover" => "Find installed agents and a configuration for them",
    ))]
    Discover(Json),
    /// Install a known agent, after showing the command.
    #[command(after_long_help = examples!(
        "acpctl agent install codex" => "See the command, and confirm it",
        "acpctl agent install codex --yes" => "Run it without confirmation",
    ))]
    Install {
        /// Name of the agent.
        agent: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Start an agent, also after a crash loop.
    #[command(after_long_help = examples!(
        "acpctl agent start claude" => "Start it, also after too many crashes",
    ))]
    Start {
        /// Name of the agent.
        agent: String,
    },
    /// Stop an agent and keep it down.
    #[command(after_long_help = examples!(
        "acpctl agent stop claude" => "Stop it until you start it again",
    ))]
    Stop {
        /// Name of the agent.
        agent: String,
    },
    /// Restart an agent and restore its sessions. Interrupts running turns.
    #[command(after_long_help = examples!(
        "acpctl agent restart claude" => "Run the new version after an upgrade",
        "acpctl agent restart claude --force" => "Do not wait for a process that cannot be killed",
    ))]
    Restart {
        /// Name of the agent.
        agent: String,
        /// Start even if processes of its last run survive SIGKILL.
        #[arg(long)]
        force: bool,
    },
    /// Print what an agent wrote to stderr.
    #[command(after_long_help = examples!(
        "acpctl agent logs claude -f" => "Follow what it writes to stderr",
        "acpctl agent logs claude -n 200" => "Print the last 200 lines",
    ))]
    Logs {
        /// Name of the agent.
        agent: String,
        #[command(flatten)]
        tail: Tail,
    },
}

#[derive(Debug, Args)]
pub(super) struct OneAgent {
    /// Name of the agent.
    agent: String,
    #[command(flatten)]
    json: Json,
}

pub(super) fn agent(command: Agent, ui: &mut Ui) -> Result {
    match command {
        Agent::Ls { all, json } => {
            let list: AgentList = ui.door().connect()?.call(method::AGENT_LIST, &Empty {})?;
            let overview = overview(&list, all, human::now(), ui.out_width());
            ui.show(json.json, &list, overview)
        }
        Agent::Show(OneAgent { agent, json }) => {
            let info = show(agent, ui)?;
            ui.show(json.json, &info, info::agent::card(&info))
        }
        Agent::Env(OneAgent { agent, json }) => {
            let info = show(agent, ui)?;
            environment(&info, json, ui)
        }
        Agent::Discover(json) => discover(json),
        Agent::Install { agent, yes } => {
            let info = show(agent, ui)?;
            install::install(&info, yes, ui)
        }
        Agent::Start { agent } => change("starting", method::AGENT_START, agent, false, ui),
        Agent::Stop { agent } => change("stopping", method::AGENT_STOP, agent, false, ui),
        Agent::Restart { agent, force } => {
            change("restarting", method::AGENT_RESTART, agent, force, ui)
        }
        Agent::Logs { agent, tail } => {
            let info = show(agent, ui)?;
            log_file::print(Path::new(info.log.raw()), tail, ui)
        }
    }
}

/// Lists the usable agents. The others are listed with `all`, and counted otherwise.
fn overview(list: &AgentList, all: bool, now: u64, width: Option<usize>) -> Text {
    let is_there = |agent: &&AgentInfo| {
        agent.installed != Some(false)
            || agent.state != AgentState::Stopped
            || agent.sessions > 0
            || agent.reason.is_some()
    };
    let (there, missing): (Vec<_>, Vec<_>) = list.agents.iter().partition(is_there);
    let mut text = info::agent::table(there, now, width);
    if all && !missing.is_empty() {
        let row = |AgentInfo { name, title, install, .. }: &AgentInfo| {
            [Text::styled(BOLD, name), title.into(), text!("{}", install)]
        };
        let titles = ["NOT INSTALLED", "TITLE", "INSTALL WITH"];
        let table = Table::new(titles, missing.into_iter().map(row));
        text += text!("\n{}", table.render(width));
    } else if !missing.is_empty() {
        let agents = if missing.len() == 1 { "agent is" } else { "agents are" };
        let line =
            text!("\n{} more {} not installed: acpctl agent ls --all", missing.len(), agents);
        text += Text::styled(Role::Dim, line) + "\n";
    }
    text
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentEnvironment<'a> {
    agent: &'a Untrusted,
    variables: &'a [VariableInfo],
    #[serde(skip_serializing_if = "Option::is_none")]
    login_shell: Option<&'a LoginShellInfo>,
}

fn environment(info: &AgentInfo, json: Json, ui: &mut Ui) -> Result {
    if json.json {
        let (variables, login_shell) = (&*info.environment, info.login_shell.as_ref());
        return Ok(ui.json(&AgentEnvironment { agent: &info.name, variables, login_shell })?);
    }
    ui.print(info::environment::table(&info.environment, ui.out_width()))?;
    if let Some(LoginShellInfo { program, problem }) = &info.login_shell {
        ui.say(match problem {
            Some(problem) => {
                text!("the login shell did not report its environment: {}", problem)
            }
            None => text!("acpd reads the environment of `{}` at each start of an agent", program),
        });
    }
    Ok(())
}

/// Runs `acpd discover`: agents are asked in the environment of this terminal, not of the daemon.
fn discover(json: Json) -> Result {
    let args = ["discover"].into_iter().chain(json.json.then_some("--json"));
    Err(become_program(&mut programs::daemon(args)))
}

fn show(agent: String, ui: &Ui) -> Result<AgentInfo> {
    Ok(daemon::agent(&mut ui.door().connect()?, &agent)?)
}

/// Without `force`, the parameters of all three methods are the same.
fn change(doing: &'static str, method: &str, agent: String, force: bool, ui: &mut Ui) -> Result {
    ui.spin(text!("{} {}", doing, escape::one_line(&agent)));
    let mut live = Live::new(ui.door().connect()?)?;
    let info: AgentInfo = live.call(ui, method, &RestartParams { agent, force })?;
    let reason = info.reason.as_ref().map(|reason| text!(": {}", reason));
    let line = match info.state {
        AgentState::Stopping => text!("stopping {}", info.name),
        state => text!("{} is {}{}", info.name, info::agent::look(state).0, reason),
    };
    match info.state {
        AgentState::Failed => {
            let hint = info.hint.as_ref().map(Text::from);
            let look = || text!("see `acpctl agent logs {}`", info.name);
            Err(CommandError::new(ExitCode::Error, line).hint(hint.unwrap_or_else(look)))
        }
        AgentState::NeedsAuth => Err(CommandError::new(ExitCode::NeedsLogin, line)
            .hint(text!("`acpctl auth login {}`", info.name))),
        _ => ui.done(line),
    }
}
