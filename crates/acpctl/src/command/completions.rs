//! `acpctl completions`: shell scripts, and completion of the running daemon's sessions, agents,
//! questions and settings.
//!
//! For each press of the key, the shell runs `acpctl` with the command line after `--` and with
//! `ACPCTL_COMPLETE` set. This starts nothing, prints nothing on stderr, and skips slow parts.
//!
//! Architecture invariant: each candidate is one plain word in every shell. Names and ids may be an
//! agent's, and shells insert them unquoted.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;
use std::{env, process, thread};

use acpd_api::{
    AgentInfo, AgentList, ClientMeta, Empty, InteractionInfo, InteractionList, LogLevel, Question,
    Role, SessionInfo, SessionList, SessionListParams, SessionState, Untrusted, method,
};
use acpd_client::Connection;
use acpd_view::{ConfigOption, Settings};
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::Result;
use crate::live::{Door, initialize_params};
use crate::text::{Text, text};
use crate::ui::Ui;
use crate::{info, install, programs};

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

const VARIABLE: &str = "ACPCTL_COMPLETE";
const PATIENCE: Duration = Duration::from_millis(500);
const HELP_WIDTH: usize = 60;

/// If a shell requests it, completes and ends the process.
pub(crate) fn complete_if_asked(definition: fn() -> Command) {
    CompleteEnv::with_factory(|| knowing(definition())).var(VARIABLE).complete();
}

pub(super) fn completions(Completions { shell }: Completions, ui: &mut Ui) -> Result {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        shell.write_registration(VARIABLE, "acpctl", "acpctl", "acpctl", &mut script)?;
    }
    Ok(ui.relay_bytes(&script)?)
}

/// Adds completions to the arguments of a command and its subcommands.
fn knowing(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|arg| with_values(&name, arg)).mut_subcommands(knowing)
}

fn with_values(command: &str, arg: Arg) -> Arg {
    let find: Find = match (command, arg.get_id().as_str()) {
        (_, "session" | "sessions" | "resume" | "attach") => sessions,
        ("install", "agent") => |connection| agents_that(install::can_install, connection),
        (_, "agent" | "to") => {
            |connection| agents_that(|it| it.installed != Some(false), connection)
        }
        ("pending" | "allow" | "deny" | "answer", "id") => questions,
        ("allow" | "deny" | "answer", "option") => answers,
        (_, "mode") => modes,
        (_, "model") => |connection| Ok(choices(settings(connection)?.of_category("model"))),
        ("set", "option") => options,
        ("set", "value") => values,
        ("run" | "handoff", "set") => option_values,
        ("log-level", "level") => {
            let levels = || Vec::from(LogLevel::LEVELS.map(CompletionCandidate::new));
            return arg.add(ArgValueCandidates::new(levels));
        }
        ("show", "key") => return arg.add(ArgValueCandidates::new(tables)),
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |begun: &OsStr| offered(find, begun)))
}

/// Returns tables, and keys outside of tables. Needs no daemon.
fn tables() -> Vec<CompletionCandidate> {
    let Ok(found) = programs::config_values() else { return Vec::new() };
    let mut tables = BTreeSet::new();
    for value in &found.values {
        let key = value.key.raw();
        tables.extend([key.split('.').next(), key.rsplit_once('.').map(|(table, _)| table)]);
    }
    let tables = tables.into_iter().flatten().map(Untrusted::from).filter(is_plain);
    tables.map(|table| CompletionCandidate::new(table.raw())).collect()
}

type Found = (Untrusted, Text);
type Find = fn(&mut Connection) -> Result<Vec<Found>>;

/// Returns values with the typed prefix; none without a daemon.
#[expect(clippy::exit, reason = "the main thread may be waiting for a daemon that does not answer")]
fn offered(find: Find, begun: &OsStr) -> Vec<CompletionCandidate> {
    // The user must not wait for a daemon that does not answer.
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        process::exit(0);
    });
    let found = Door::here(false).connect().and_then(|mut connection| find(&mut connection));
    let Some(begun) = begun.to_str() else { return Vec::new() };
    let is_offered = |(value, _): &Found| value.raw().starts_with(begun) && is_plain(value);
    let candidate = |(value, help): Found| {
        let help = Some(help.cut(HELP_WIDTH).to_string()).filter(|help| !help.is_empty());
        CompletionCandidate::new(value.raw()).help(help.map(Into::into))
    };
    found.unwrap_or_default().into_iter().filter(is_offered).map(candidate).collect()
}

/// Returns whether a text is one word without a meaning to the shell or to the command.
fn is_plain(word: &Untrusted) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "-_.:/@+=,%".contains(c);
    !word.raw().is_empty() && !word.raw().starts_with('-') && word.raw().chars().all(is_word)
}

fn sessions(connection: &mut Connection) -> Result<Vec<Found>> {
    let list: SessionList = connection.call(method::SESSION_LIST, &SessionListParams::default())?;
    let about = |session: &SessionInfo| {
        text!("{}, {}", session.agent, session.title.as_ref().unwrap_or(&session.cwd))
    };
    let found = |session: &SessionInfo| match session.handle() {
        name if is_plain(name) => (name.clone(), about(session)),
        // A name with several words is completed by its id.
        name => (session.session_id.clone(), text!("{}: {}", name, about(session))),
    };
    Ok(list.sessions.iter().map(found).collect())
}

fn agents_that(fits: fn(&AgentInfo) -> bool, connection: &mut Connection) -> Result<Vec<Found>> {
    let list: AgentList = connection.call(method::AGENT_LIST, &Empty {})?;
    let found = list.agents.into_iter().filter(fits);
    Ok(found.map(|agent| (agent.name, Text::from(&agent.title))).collect())
}

fn questions(connection: &mut Connection) -> Result<Vec<Found>> {
    let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
    let open = list.interactions.iter();
    Ok(open.map(|open| (open.id.clone(), info::question::asked(&open.question))).collect())
}

/// Returns the options of the questions on the command line, or else of all questions.
fn answers(connection: &mut Connection) -> Result<Vec<Found>> {
    let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
    let words = words();
    let is_named = |open: &InteractionInfo| words.iter().any(|word| open.id == **word);
    let is_any_named = list.interactions.iter().any(is_named);
    let wanted = list.interactions.into_iter().filter(|open| !is_any_named || is_named(open));
    let options = wanted.flat_map(|open| match open.question {
        Question::Permission { options, .. } => options,
        _ => Vec::new(),
    });
    Ok(options.map(|one| (one.option_id, Text::from(&one.name))).collect())
}

fn modes(connection: &mut Connection) -> Result<Vec<Found>> {
    let modes = settings(connection)?.modes.map(|modes| modes.available_modes);
    let modes = modes.unwrap_or_default();
    Ok(modes.iter().map(|mode| (mode.id.clone(), text!("{}", mode.name))).collect())
}

fn choices(option: Option<&ConfigOption>) -> Vec<Found> {
    let choices = option.into_iter().flat_map(ConfigOption::choices);
    choices.map(|choice| (choice.value.clone(), text!("{}", choice.name))).collect()
}

fn options(connection: &mut Connection) -> Result<Vec<Found>> {
    let settings = settings(connection)?;
    let found = settings.options.iter();
    Ok(found.map(|option| (option.id.clone(), text!("{}", option.name))).collect())
}

fn values(connection: &mut Connection) -> Result<Vec<Found>> {
    let words = words();
    let options = settings(connection)?.options;
    Ok(choices(options.iter().find(|option| words.iter().any(|word| option.id == **word))))
}

fn option_values(connection: &mut Connection) -> Result<Vec<Found>> {
    let settings = settings(connection)?;
    let pairs = settings.options.iter().flat_map(|option| {
        option.choices().map(|choice| {
            let pair = Untrusted::from(format!("{}={}", option.id.raw(), choice.value.raw()));
            (pair, text!("{}", choice.name))
        })
    });
    Ok(pairs.collect())
}

/// Returns the settings of the session on the command line, or else of another session of its
/// agent. A sleeping session is skipped, because reading its settings would start the agent.
fn settings(connection: &mut Connection) -> Result<Settings> {
    let list: SessionList = connection.call(method::SESSION_LIST, &SessionListParams::default())?;
    let words = words();
    let is_named = |session: &&SessionInfo| {
        words.iter().any(|word| {
            let is_name = session.name.as_ref().is_some_and(|name| *name == **word);
            is_name || session.session_id.raw().starts_with(&**word) && !word.is_empty()
        })
    };
    let is_of_agent = |session: &&SessionInfo| words.iter().any(|word| session.agent == **word);
    let live = || list.sessions.iter().filter(|session| session.state == SessionState::Live);
    let session = match list.sessions.iter().find(is_named) {
        Some(named) => Some(named).filter(|session| session.state == SessionState::Live),
        None => live().find(is_of_agent).or_else(|| live().next()),
    };
    let Some(session) = session else { return Ok(Settings::default()) };
    let agent = Some(session.agent.raw().to_owned());
    let meta = ClientMeta { agent, role: Some(Role::Observer), ..ClientMeta::default() };
    let _: Box<RawValue> = connection.call("initialize", &initialize_params(&meta))?;
    let params = json!({"sessionId": session.session_id, "cwd": session.cwd, "mcpServers": []});
    let result: Box<RawValue> = connection.call("session/resume", &params)?;
    Ok(Settings::from_raw(&result))
}

fn words() -> Vec<String> {
    let args = env::args_os().skip_while(|arg| arg != "--").skip(1);
    // A value may be in the same word as its option.
    let word = |arg: std::ffi::OsString| {
        let arg = arg.into_string().unwrap_or_default();
        match arg.split_once('=') {
            Some((option, value)) if option.starts_with('-') => value.to_owned(),
            _ => arg,
        }
    };
    args.map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_as_more_than_a_word_is_not_offered() {
        for plain in ["fix-login", "0199.7", "a/b:c@1", "größe"] {
            assert!(is_plain(&plain.into()), "{plain}");
        }
        for odd in ["", "-x", "a b", "$(reboot)", "`x`", "a;b", "*", "~", "a\nb", "\u{1b}[2J", "'"]
        {
            assert!(!is_plain(&odd.into()), "{odd:?}");
        }
    }

    #[test]
    fn the_command_holds_together_with_what_it_knows() {
        knowing(crate::command::definition()).debug_assert();
    }
}
