//! `acpctl session …`: sessions and their journals.

mod export;
mod log;
mod reseed;
mod rm;
mod search;
mod settings;
mod undo;
mod worktree;

use std::path::PathBuf;

use acp_wire::acp::NewSessionResult;
use acpd_api::{
    AgentInfo, AgentRef, ArchiveFilter, ClientMeta, ExitCode, MoveParams, NAMESPACE,
    NewSessionMeta, RenameParams, SessionInfo, SessionList, SessionListParams, SessionRef,
    TitleParams, method,
};
use acpd_client::Connection;
use clap::{Subcommand, ValueHint};
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::Json;
use crate::dirs::{directory, utf8};
use crate::door::{Door, initialize_params};
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::{card, table};
use crate::live::Live;
use crate::lookup::{Care, Which, WhichOrLast, find, find_live};
use crate::text::text;
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// List sessions, the last used first.
    #[command(alias = "list")]
    #[command(after_long_help = examples!(
        "acpctl session ls" => "List all sessions that are not archived",
        "acpctl session ls --cwd . -a claude" => "List sessions of an agent in this directory",
        "acpctl session ls --archived" => "List archived sessions",
    ))]
    Ls {
        /// Only sessions of this agent.
        #[arg(short, long)]
        agent: Option<String>,
        /// Only sessions of this directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
        /// List archived sessions instead.
        #[arg(long)]
        archived: bool,
        /// Also list archived sessions.
        #[arg(long, conflicts_with = "archived")]
        all: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Show one session.
    #[command(after_long_help = examples!(
        "acpctl session show" => "Show the last used session",
        "acpctl session show main --json" => "Print it as JSON",
    ))]
    Show {
        #[command(flatten)]
        which: WhichOrLast,
        #[command(flatten)]
        json: Json,
    },
    /// Print the conversation.
    Log(log::Log),
    /// Search conversations, best match first.
    Search(search::Search),
    /// Print a session as Markdown or JSON.
    Export(export::Export),
    /// Show the modes of a session, or switch to one.
    #[command(after_long_help = examples!(
        "acpctl session mode main" => "List the modes",
        "acpctl session mode main code" => "Switch to the mode `code`",
    ))]
    Mode {
        #[command(flatten)]
        which: Which,
        /// Switch to this mode: id or name.
        mode: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Show the options of a session, the values of one, or set one.
    #[command(after_long_help = examples!(
        "acpctl session set main" => "Show the options and their values",
        "acpctl session set main model" => "List the models",
        "acpctl session set main model demo-large" => "Use this model from now on",
    ))]
    Set {
        #[command(flatten)]
        which: Which,
        /// The option: id or name.
        option: Option<String>,
        /// The new value.
        value: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// List the slash commands of a session's agent.
    #[command(after_long_help = examples!(
        "acpctl session commands main" => "List the slash commands of its agent",
    ))]
    Commands {
        #[command(flatten)]
        which: WhichOrLast,
        #[command(flatten)]
        json: Json,
    },
    /// Rename a session.
    #[command(after_long_help = examples!(
        "acpctl session rename main parser" => "Rename it to `parser`",
        "acpctl session rename parser --clear" => "Remove its name; its id stays",
    ))]
    Rename {
        #[command(flatten)]
        which: Which,
        /// The new name.
        #[arg(required_unless_present = "clear")]
        name: Option<String>,
        /// Remove the name.
        #[arg(long, conflicts_with = "name")]
        clear: bool,
    },
    /// Set the title of a session; the agent's titles do not replace it.
    #[command(after_long_help = examples!(
        "acpctl session title main 'Fix the parser'" => "Set a title",
        "acpctl session title main --clear" => "Show the agent's title again",
    ))]
    Title {
        #[command(flatten)]
        which: Which,
        /// The title.
        #[arg(required_unless_present = "clear")]
        title: Option<String>,
        /// Remove the title; show the agent's title again.
        #[arg(long, conflicts_with = "title")]
        clear: bool,
    },
    /// Copy a session with its history, and print the id of the copy.
    #[command(after_long_help = examples!(
        "acpctl session fork main --name other" => "Try another way in a copy",
    ))]
    Fork {
        #[command(flatten)]
        which: Which,
        /// Name of the copy.
        #[arg(long)]
        name: Option<String>,
    },
    /// Show, merge or remove the git worktree of a session.
    Worktree(worktree::WorktreeArgs),
    /// Change the directory of a session after it was moved or renamed.
    #[command(after_long_help = examples!(
        "acpctl session move main --cwd ~/src/app" => "Set the new directory of `main`",
    ))]
    Move {
        #[command(flatten)]
        which: Which,
        /// The new directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: PathBuf,
    },
    /// Give up a session that cannot be restored: the next prompt continues in a new session of the agent, with a
    /// summary or a transcript (`reseed`).
    #[command(after_long_help = examples!(
        "acpctl session reseed main" =>
            "Continue in a new session if the agent cannot restore it",
        "acpctl session reseed main --discard" =>
            "Do it even if the agent may still have the conversation",
    ))]
    Reseed {
        #[command(flatten)]
        which: Which,
        /// Do it even if the agent may still have the conversation; its memory is lost.
        #[arg(long)]
        discard: bool,
    },
    /// Close a session to free its resources; the next prompt restores it. Interrupts a running turn.
    #[command(after_long_help = examples!(
        "acpctl session close main" => "Free the resources of `main`",
    ))]
    Close {
        #[command(flatten)]
        which: Which,
    },
    /// Close a session and hide it from lists; the next prompt takes it out of the archive. Interrupts a running
    /// turn.
    #[command(after_long_help = examples!(
        "acpctl session archive main" => "Hide it; `session ls --archived` shows it",
    ))]
    Archive {
        #[command(flatten)]
        which: Which,
    },
    /// Take a session out of the archive.
    #[command(after_long_help = examples!(
        "acpctl session unarchive main" => "Show it in lists again",
    ))]
    Unarchive {
        #[command(flatten)]
        which: Which,
    },
    /// Delete sessions with their history; `session undo` restores them for a day.
    Rm(rm::Rm),
    /// Restore deleted sessions.
    Undo(undo::Undo),
}

/// Runs a `session` command.
pub(super) fn session(command: SessionCommand, door: Door, ui: &mut Ui) -> Result<ExitCode> {
    let done = match command {
        SessionCommand::Ls { agent, cwd, archived, all, json } => {
            let cwd = cwd.map(|dir| utf8(&directory(&dir)?)).transpose()?;
            let archived = match (archived, all) {
                (true, _) => Some(ArchiveFilter::Only),
                (_, true) => Some(ArchiveFilter::Include),
                _ => None,
            };
            list(&SessionListParams { agent, cwd, archived }, json, door, ui)
        }
        SessionCommand::Show { which: session, json } => {
            let info = find(&mut door.connect()?, &Which::from(&session), Care::Guess, ui)?;
            ui.show(json.json, &info, card(&info, human::now()))
        }
        SessionCommand::Log(args) => log::log(&args, door, ui),
        SessionCommand::Search(args) => search::search(&args, door, ui),
        SessionCommand::Export(args) => export::export(&args, door, ui),
        SessionCommand::Mode { which, mode, json } => {
            settings::mode(&which, mode.as_deref(), json, door, ui)
        }
        SessionCommand::Set { which, option, value, json } => {
            let setting = option.as_deref().map(|option| (option, value.as_deref()));
            settings::set(&which, setting, json, door, ui)
        }
        SessionCommand::Commands { which, json } => {
            settings::commands(&Which::from(&which), json, door, ui)
        }
        SessionCommand::Rename { which: session, name, clear: _ } => {
            let info = change(&session, Care::Guess, door, ui, |session, connection| {
                let params = RenameParams { session, name };
                Ok(connection.call(method::SESSION_RENAME, &params)?)
            })?;
            match &info.name {
                Some(name) => ui.say(text!("session {} is now named `{}`", info.session_id, name)),
                None => ui.say(text!("session {} has no name now", info.session_id)),
            }
            Ok(())
        }
        SessionCommand::Title { which: session, title, clear: _ } => {
            let info = change(&session, Care::Guess, door, ui, |session, connection| {
                let params = TitleParams { session, title };
                Ok(connection.call(method::SESSION_TITLE, &params)?)
            })?;
            match &info.title {
                Some(title) => {
                    ui.say(text!("the title of {} is now `{}`", info.handle(), title));
                }
                None => ui.say(text!("{} has no title now", info.handle())),
            }
            Ok(())
        }
        SessionCommand::Archive { which: session } => {
            let info = change(&session, Care::Exact, door, ui, |session, connection| {
                Ok(connection.call(method::SESSION_ARCHIVE, &session)?)
            })?;
            ui.say(text!("{} is archived until its next prompt", info.handle()));
            Ok(())
        }
        SessionCommand::Unarchive { which: session } => {
            let info = change(&session, Care::Guess, door, ui, |session, connection| {
                Ok(connection.call(method::SESSION_UNARCHIVE, &session)?)
            })?;
            ui.say(text!("{} is no longer archived", info.handle()));
            Ok(())
        }
        SessionCommand::Worktree(args) => worktree::worktree(&args, door, ui),
        SessionCommand::Fork { which, name } => fork(&which, name, door, ui),
        SessionCommand::Move { which: session, cwd } => {
            let cwd = utf8(&directory(&cwd)?)?;
            let info = change(&session, Care::Guess, door, ui, |session, connection| {
                let params = MoveParams { session, cwd };
                Ok(connection.call(method::SESSION_MOVE, &params)?)
            })?;
            ui.say(text!("{} now works in {}", info.handle(), info.cwd));
            Ok(())
        }
        SessionCommand::Reseed { which, discard } => reseed::reseed(&which, discard, door, ui),
        SessionCommand::Close { which: session } => {
            let info = change(&session, Care::Exact, door, ui, |session, connection| {
                Ok(connection.call(method::SESSION_CLOSE, &session)?)
            })?;
            ui.say(text!("{} is closed; the next prompt restores it", info.handle()));
            Ok(())
        }
        SessionCommand::Rm(args) => rm::rm(&args, door, ui),
        SessionCommand::Undo(args) => undo::undo(args, door, ui),
    };
    done.map(|()| ExitCode::Ok)
}

/// Lists sessions, the most recently used first.
fn list(params: &SessionListParams, json: Json, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let list: SessionList = connection.call(method::SESSION_LIST, params)?;
    // No sessions of an agent that does not exist is a mistake.
    if let (true, Some(agent)) = (list.sessions.is_empty(), params.agent.clone()) {
        let _: AgentInfo = connection.call(method::AGENT_SHOW, &AgentRef { agent })?;
    }
    if list.sessions.is_empty() && !json.json {
        ui.say(if *params == SessionListParams::default() {
            "no sessions; start one with `acpctl run -s NAME PROMPT`"
        } else {
            "no session matches"
        });
        return Ok(());
    }
    let table = table(&list.sessions, human::now(), ui.out_width());
    ui.show(json.json, &list, table)
}

/// Copies a session, with its directory and its MCP servers.
fn fork(session: &Which, name: Option<String>, door: Door, ui: &mut Ui) -> Result {
    let mut live = Live::new(door.connect_lasting()?)?;
    let info = find_live(&mut live, session, ui)?;
    let agent = Some(info.agent.raw().to_owned());
    let meta = ClientMeta { agent, notices: true, ..ClientMeta::default() };
    ui.spin("forking");
    let _: Box<RawValue> = live.call(ui, "initialize", &initialize_params(&meta))?;
    let meta = NewSessionMeta { name, ..NewSessionMeta::default() };
    let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "_meta": {NAMESPACE: meta}});
    let result: Box<RawValue> = live.call(ui, "session/fork", &params)?;
    let made = NewSessionResult::from_raw(&result)?;
    Ok(ui.relay_line(&made.session_id.into())?)
}

/// Finds a session and does something to it.
fn change(
    which: &Which,
    care: Care,
    door: Door,
    ui: &mut Ui,
    call: impl FnOnce(SessionRef, &mut Connection) -> Result<SessionInfo>,
) -> Result<SessionInfo> {
    let mut connection = door.connect()?;
    let session = find(&mut connection, which, care, ui)?;
    call(session.exactly(), &mut connection)
}
