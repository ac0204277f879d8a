//! `acpctl auth …`: logins of agents.
//!
//! A login is an `authenticate` request to the agent, or a command in this terminal. After a
//! command, acpd restarts the agent, because an agent reads its login at start.

use std::collections::BTreeSet;
use std::process::Command;

use acp_wire::acp::{
    AuthMethod, ElicitationAnswer, ElicitationMode, ElicitationRequest, InitializeResult,
    TerminalLogin,
};
use acp_wire::{ErrorObject, Message, Outcome, parse};
use acpd_api::{
    AgentInfo, AgentList, AgentRef, AuthState, Empty, ExitCode, LOGIN_NOT_BEGUN,
    Role as ClientRole, Untrusted, escape, method,
};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::args::Json;
use crate::confirm::{ADD_YES, confirm, pick, yes};
use crate::error::{CommandError, Result};
use crate::live::{Event, Live};
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;
use crate::{form, human, info, programs};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Auth {
    /// Show which agents are logged in, and how acpd knows.
    #[command(after_long_help = examples!(
        "acpctl auth status" => "Show which agents are logged in",
        "acpctl auth status copilot --json" => "Print the state of one agent as JSON",
    ))]
    Status {
        /// Only this agent.
        agent: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Log in to an agent; prompts that waited for the login continue.
    #[command(after_long_help = examples!(
        "acpctl auth login copilot" => "Log in; waiting prompts continue",
    ))]
    Login {
        /// Name of the agent.
        agent: String,
        /// Id of the login method.
        #[arg(long, value_name = "M")]
        method: Option<String>,
    },
    /// Log out of an agent, for all its clients and sessions.
    #[command(after_long_help = examples!(
        "acpctl auth logout copilot" => "Log out all clients of the agent",
    ))]
    Logout {
        /// Name of the agent.
        agent: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn auth(command: Auth, ui: &mut Ui) -> Result {
    match command {
        Auth::Status { agent, json } => status(agent, json, ui),
        Auth::Login { agent, method } => login(&agent, method.as_deref(), ui),
        Auth::Logout { agent, yes } => logout(&agent, yes, ui),
    }
}

fn status(agent: Option<String>, json: Json, ui: &mut Ui) -> Result {
    let agents = match agent {
        Some(agent) => vec![ui.door().connect()?.call(method::AGENT_SHOW, &AgentRef { agent })?],
        None => {
            let list: AgentList = ui.door().connect()?.call(method::AGENT_LIST, &Empty {})?;
            let known = |agent: &AgentInfo| agent.auth.state != AuthState::Unknown;
            list.agents.into_iter().filter(|agent| json.json || known(agent)).collect()
        }
    };
    let nothing = agents.is_empty().then_some("no logins are known: no agent has been used yet");
    let table = info::agent::login_table(&agents, human::now(), ui.out_width());
    let of = |agent: &AgentInfo| json!({"agent": agent.name, "auth": agent.auth});
    ui.show_list(json.json, &agents.iter().map(of).collect::<Vec<Value>>(), nothing, table)
}

fn login(agent: &str, wanted: Option<&str>, ui: &mut Ui) -> Result {
    let mut live = Live::new(ui.door().connect()?)?;
    let info: AgentInfo = live.call(ui, method::AGENT_SHOW, &of(agent))?;
    let shown = escape::one_line(agent);
    ui.spin(text!("asking {}", shown));
    let bound = bind(agent, &mut live, ui);
    ui.stop_spinning();
    let offered = match bound {
        Ok(result) => result.auth_methods,
        // Some agents do not start without a login.
        Err(_) if info.auth.command.is_some() => Vec::new(),
        Err(error) => return Err(error),
    };
    let way = choose(agent, ways(offered, info.auth.command.as_ref()), wanted, ui)?;
    match &way.terminal {
        None => authenticate(&way.id, &mut live, ui)?,
        Some(terminal) => {
            run(agent, terminal, ui)?;
            ui.spin(text!("restarting {}", shown));
            let AgentInfo { .. } = live.call(ui, method::AUTH_DONE, &of(agent))?;
        }
    }
    ui.done(text!("logged in to {}", shown))
}

fn of(agent: &str) -> AgentRef {
    AgentRef { agent: agent.to_owned() }
}

/// Binds the connection to the agent, which is started if needed.
fn bind(agent: &str, live: &mut Live, ui: &mut Ui) -> Result<InitializeResult> {
    let terminal = ("auth", json!({"terminal": true}));
    let forms = ui.can_ask().then(|| ("elicitation", json!({"form": {}, "url": {}})));
    let can = [terminal].into_iter().chain(forms);
    Ok(InitializeResult::from_raw(&live.bind(&agent.into(), ClientRole::Controller, can, ui)?)?)
}

/// Returns the agent's login methods, or else the configured command.
fn ways(mut offered: Vec<AuthMethod>, command: Option<&Untrusted>) -> Vec<AuthMethod> {
    offered.retain(|way| way.terminal.is_some() || way.kind == "agent");
    let words = command.and_then(|command| shlex::split(command.raw())).unwrap_or_default();
    if let (true, Some((program, args))) = (offered.is_empty(), words.split_first()) {
        let (command, args) = (Some(program.clone()), args.to_vec());
        let terminal = Some(TerminalLogin { command, args, env: Vec::new() });
        let (id, kind, name) = ("command".to_owned(), "terminal".to_owned(), words.join(" "));
        let (description, meta) = (None, Vec::new());
        offered.push(AuthMethod { id, name, description, kind, terminal, meta });
    }
    offered
}

fn choose(
    agent: &str,
    mut ways: Vec<AuthMethod>,
    wanted: Option<&str>,
    ui: &mut Ui,
) -> Result<AuthMethod> {
    let listed = || {
        let ids: BTreeSet<&String> = ways.iter().map(|way| &way.id).collect();
        Text::join(ids.into_iter().map(|id| text!("`{}`", Untrusted::from(id))), ", ")
    };
    let agent = escape::one_line(agent);
    let at = match wanted {
        _ if ways.is_empty() => {
            let text = text!("agent `{}` offers no login method", agent);
            let hint = text!("log in with its own command, then `acpctl agent restart {}`", agent);
            return Err(CommandError::new(ExitCode::Error, text).hint(hint));
        }
        Some(wanted) => {
            let at = ways.iter().position(|way| way.id == wanted);
            at.ok_or_else(|| {
                let wanted = escape::one_line(wanted);
                CommandError::usage(text!("agent `{}` has no login method `{}`", agent, wanted))
                    .hint(text!("it has {}", listed()))
            })?
        }
        None if ways.len() == 1 => 0,
        None if ui.can_ask() => {
            let shown = |text: &String| Untrusted::from(text);
            let labels = ways.iter().map(|way| text!("{} ({})", shown(&way.name), shown(&way.id)));
            pick(ui, "> ", labels, |_| None)?
        }
        None => {
            return Err(CommandError::usage(text!("agent `{}` has several login methods", agent))
                .hint(text!("choose one with `--method`: {}", listed())));
        }
    };
    Ok(ways.swap_remove(at))
}

fn authenticate(id: &str, live: &mut Live, ui: &mut Ui) -> Result {
    ui.spin("logging in, Ctrl-C cancels");
    let asked = live.writer.request("authenticate", &json!({"methodId": id}))?;
    loop {
        let line = match live.next(ui)? {
            Event::Line(line) => line,
            Event::Ended(error) => return Err(error.into()),
            Event::Interrupt | Event::Detach => {
                live.writer.cancel(&asked)?;
                return Err(CommandError::new(ExitCode::Cancelled, "the login was cancelled"));
            }
            _ => continue,
        };
        match parse(&line) {
            Ok(Message::Response { id, outcome }) if id == asked => {
                return match outcome {
                    Outcome::Result(_) => Ok(()),
                    Outcome::Error(error) => Err(CommandError::rpc(&ErrorObject::from_raw(error))
                        .with_code(ExitCode::NeedsLogin)),
                };
            }
            Ok(Message::Request { id, method, params }) => {
                match params.map(ElicitationRequest::from_raw) {
                    Some(Ok(question)) if method == "elicitation/create" => {
                        ui.stop_spinning();
                        let answer = answer(&question, ui)?;
                        live.writer.answer(&id, &answer)?;
                        ui.spin("logging in, Ctrl-C cancels");
                    }
                    _ => live.refuse(&id, &method)?,
                }
            }
            _ => {}
        }
    }
}

fn answer(question: &ElicitationRequest<'_>, ui: &mut Ui) -> Result<ElicitationAnswer> {
    ui.say(Text::styled(BOLD, escape::one_line(&question.message)));
    match &question.mode {
        ElicitationMode::Form(form) => {
            let content = form::ask(form, ui)?;
            Ok(ElicitationAnswer::Accept { content: Some(content) })
        }
        ElicitationMode::Url { url, .. } => {
            ui.say(Text::styled(Role::Name, escape::one_line(url)));
            let agrees = yes(ui, "open it and agree? y/n > ")?;
            let accept = ElicitationAnswer::Accept { content: None };
            Ok(if agrees { accept } else { ElicitationAnswer::Decline })
        }
    }
}

/// Runs a command in this terminal, with the environment of the agent.
fn run(agent: &str, terminal: &TerminalLogin, ui: &mut Ui) -> Result {
    ui.finish()?;
    let mut command = Command::new(acpd_client::daemon_exe());
    command.arg("login").arg(agent);
    for (name, value) in &terminal.env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    match &terminal.command {
        None => command.arg("--own").arg("--"),
        Some(program) => command.arg("--").arg(program),
    };
    let status = programs::status_of(command.args(&terminal.args))?;
    if status.success() {
        return Ok(());
    }
    if status.code() == Some(LOGIN_NOT_BEGUN.into()) {
        return Err(CommandError::printed());
    }
    let agent = escape::one_line(agent);
    let status = Untrusted::of(status);
    let text = text!("the login command of `{}` ended with {}", agent, status);
    Err(CommandError::new(ExitCode::NeedsLogin, text)
        .hint(text!("try again, or `acpctl auth status {}`", agent)))
}

fn logout(agent: &str, sure: bool, ui: &mut Ui) -> Result {
    let mut live = Live::new(ui.door().connect()?)?;
    let info: AgentInfo = live.call(ui, method::AGENT_SHOW, &of(agent))?;
    let offered = bind(agent, &mut live, ui)?.capabilities;
    let shown = escape::one_line(agent);
    if !offered.logout {
        let text = text!("agent `{}` offers no logout", shown);
        return Err(CommandError::new(ExitCode::Error, text)
            .hint("log out with its own command, then restart it with `acpctl agent restart`"));
    }
    if !sure {
        let affected = text!("all clients and {}", human::counted(info.sessions, "session"));
        let doing = text!("logging {} out of {}", affected, shown);
        let prompt = text!("log out of {}? This affects {}. y/n > ", shown, affected);
        confirm(ui, doing, ADD_YES, &Text::new(), prompt)?;
    }
    let _: Value = live.call(ui, "logout", &json!({}))?;
    ui.done(text!("logged out of {}", shown))
}
