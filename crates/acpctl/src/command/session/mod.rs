//! `acpctl session …`: sessions and their journals.

mod export;
mod log;
mod rm;
mod search;
mod settings;
mod undo;
mod worktree;

use std::path::PathBuf;

use acp_wire::acp::NewSessionResult;
use acpd_api::{
    ArchiveFilter, LabelParams, MoveParams, NAMESPACE, NewSessionMeta, RenameParams, ReseedParams,
    Role, SessionInfo, SessionList, SessionListParams, SessionRef, SessionState, TitleParams,
    method,
};
use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::Json;
use crate::daemon::agent;
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::{card, labels, table};
use crate::live::Live;
use crate::lookup::{Care, Which, find, or_last};
use crate::text::{Text, text};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum SessionCommand {
    /// List sessions, the last used first.
    #[command(alias = "list")]
    #[command(after_long_help = examples!(
        "acpctl session ls --cwd . -a claude" => "List sessions of an agent in this directory",
        "acpctl session ls --label urgent" => "List sessions with a label",
        "acpctl session ls --archived" => "List archived sessions",
    ))]
    Ls {
        /// Only sessions of this agent.
        #[arg(short, long)]
        agent: Option<String>,
        /// Only sessions of this directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
        /// Only sessions with this label; repeat it for sessions with all of several labels.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// List archived sessions instead.
        #[arg(long)]
        archived: bool,
        /// Also list archived sessions.
        #[arg(long, conflicts_with = "archived")]
        all: bool,
        /// Show at most N sessions.
        #[arg(short = 'n', long, value_name = "N")]
        limit: Option<u32>,
        #[command(flatten)]
        json: Json,
    },
    /// Show one session.
    #[command(after_long_help = examples!(
        "acpctl session show" => "Show the last used session",
        "acpctl session show main --json" => "Print it as JSON",
    ))]
    Show(Show),
    /// Print the conversation.
    Log(log::Log),
    /// Search conversations, best match first.
    Search(search::Search),
    /// Print a session as Markdown or JSON.
    Export(export::Export),
    /// Show the modes of a session, or switch to one.
    Mode(settings::ModeArgs),
    /// Show the options of a session or the values of an option, or set it.
    Set(settings::SetArgs),
    /// List the slash commands of a session's agent.
    Commands(settings::CommandsArgs),
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
    /// Show the labels of a session, add some or remove some.
    #[command(after_long_help = examples!(
        "acpctl session label main urgent team=infra" => "Add two labels",
        "acpctl session label main --remove urgent" => "Remove one",
        "acpctl session label main" => "Print the labels, one per line",
    ))]
    Label {
        #[command(flatten)]
        which: Which,
        /// Labels to add: 1 to 64 ASCII letters, digits and `._:=/-`, no `-` at the beginning. A session has at
        /// most 16.
        #[arg(value_name = "LABEL")]
        add: Vec<String>,
        /// Remove this label; may be repeated.
        #[arg(long, value_name = "LABEL")]
        remove: Vec<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Copy a session with its history and labels, and print the id of the copy.
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
    /// summary, or the transcript if `reseed` in the configuration says so.
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
    Close(Which),
    /// Close a session and hide it from lists; the next prompt takes it out of the archive. Interrupts a running
    /// turn.
    #[command(after_long_help = examples!(
        "acpctl session archive main" => "Hide it; `session ls --archived` shows it",
    ))]
    Archive(Which),
    /// Take a session out of the archive.
    #[command(after_long_help = examples!(
        "acpctl session unarchive main" => "Show it in lists again",
    ))]
    Unarchive(Which),
    /// Delete sessions with their history; `session undo` restores them for a day.
    Rm(rm::Rm),
    /// Restore deleted sessions.
    Undo(undo::Undo),
}

#[derive(Debug, Args)]
#[command(mut_arg("session", or_last))]
pub(super) struct Show {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    json: Json,
}

pub(super) fn session(command: SessionCommand, ui: &mut Ui) -> Result {
    match command {
        SessionCommand::Ls { agent, cwd, labels, archived, all, limit, json } => {
            let cwd = cwd.map(|dir| ui.place_of(&dir)).transpose()?;
            let archived = match (archived, all) {
                (true, _) => Some(ArchiveFilter::Only),
                (_, true) => Some(ArchiveFilter::Include),
                _ => None,
            };
            let some = SessionListParams {
                agent,
                cwd,
                labels,
                archived,
                limit,
                ..SessionListParams::default()
            };
            list(&some, json, ui)
        }
        SessionCommand::Show(Show { which, json }) => {
            let info = find(&mut ui.door().connect()?, &which, Care::Guess, ui)?;
            ui.show(json.json, &info, card(&info, human::now()))
        }
        SessionCommand::Log(args) => log::log(&args, ui),
        SessionCommand::Search(args) => search::search(&args, ui),
        SessionCommand::Export(args) => export::export(&args, ui),
        SessionCommand::Mode(args) => settings::mode(&args, ui),
        SessionCommand::Set(args) => settings::set(&args, ui),
        SessionCommand::Commands(args) => settings::commands(&args, ui),
        SessionCommand::Rename { which, name, clear: _ } => {
            let params = |session| RenameParams { session, name };
            let said = |info: &SessionInfo| match &info.name {
                Some(name) => text!("session {} is now named `{}`", info.session_id, name),
                None => text!("session {} has no name now", info.session_id),
            };
            change(&which, Care::Guess, method::SESSION_RENAME, params, said, ui)
        }
        SessionCommand::Title { which, title, clear: _ } => {
            let params = |session| TitleParams { session, title };
            let said = |info: &SessionInfo| match &info.title {
                Some(title) => text!("the title of {} is now `{}`", info.handle(), title),
                None => text!("{} has no title now", info.handle()),
            };
            change(&which, Care::Guess, method::SESSION_TITLE, params, said, ui)
        }
        SessionCommand::Label { which, add, remove, json } => label(&which, add, remove, json, ui),
        SessionCommand::Archive(which) => {
            let said =
                |info: &SessionInfo| text!("{} is archived until its next prompt", info.handle());
            change(&which, Care::Exact, method::SESSION_ARCHIVE, |it| it, said, ui)
        }
        SessionCommand::Unarchive(which) => {
            let said = |info: &SessionInfo| text!("{} is no longer archived", info.handle());
            change(&which, Care::Guess, method::SESSION_UNARCHIVE, |it| it, said, ui)
        }
        SessionCommand::Worktree(_) if ui.machine.is_some() => {
            Err(CommandError::usage("worktrees are handled on their own machine only"))
        }
        SessionCommand::Worktree(args) => worktree::worktree(&args, ui),
        SessionCommand::Fork { which, name } => fork(&which, name, ui),
        SessionCommand::Move { which, cwd } => {
            let cwd = ui.place_of(&cwd)?;
            let params = |session| MoveParams { session, cwd };
            let said = |info: &SessionInfo| text!("{} now works in {}", info.handle(), info.cwd);
            change(&which, Care::Guess, method::SESSION_MOVE, params, said, ui)
        }
        SessionCommand::Reseed { which, discard } => {
            let params = |session| ReseedParams { session, discard };
            change(&which, Care::Exact, method::SESSION_RESEED, params, reseeded, ui)
        }
        SessionCommand::Close(which) => {
            let said = |info: &SessionInfo| {
                text!("{} is closed; the next prompt restores it", info.handle())
            };
            change(&which, Care::Exact, method::SESSION_CLOSE, |it| it, said, ui)
        }
        SessionCommand::Rm(args) => rm::rm(&args, ui),
        SessionCommand::Undo(args) => undo::undo(args, ui),
    }
}

fn list(params: &SessionListParams, json: Json, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let list: SessionList = connection.call(method::SESSION_LIST, params)?;
    // An empty list for an agent that does not exist is an error.
    if let (true, Some(name)) = (list.sessions.is_empty(), &params.agent) {
        agent(&mut connection, name)?;
    }
    let nothing = if *params == SessionListParams::default() {
        "no sessions; start one with `acpctl run -s NAME PROMPT`"
    } else {
        "no session matches"
    };
    let nothing = list.sessions.is_empty().then_some(nothing);
    let rows = if json.json { &[][..] } else { &list.sessions };
    let table = table(rows, false, human::now(), ui.out_width());
    ui.show_list(json.json, &list, nothing, table)
}

fn label(which: &Which, add: Vec<String>, remove: Vec<String>, json: Json, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let mut info = find(&mut connection, which, Care::Guess, ui)?;
    let changes = !add.is_empty() || !remove.is_empty();
    if changes {
        let params = LabelParams { session: info.exactly(), add, remove };
        info = connection.call(method::SESSION_LABEL, &params)?;
    }
    if json.json {
        return Ok(ui.json(&info.labels)?);
    }
    match labels(&info) {
        None => ui.done(text!("{} has no labels", info.handle())),
        Some(labels) if changes => ui.done(text!("{} has the labels {}", info.handle(), labels)),
        Some(_) => {
            let lines = info.labels.iter().map(|label| text!("{}\n", label));
            Ok(ui.print(lines.collect::<Text>())?)
        }
    }
}

fn fork(session: &Which, name: Option<String>, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect_lasting()?;
    let info = find(&mut connection, session, Care::Guess, ui)?;
    let mut live = Live::new(connection)?;
    ui.spin("forking");
    live.bind(&info.agent, Role::Controller, [], ui)?;
    let meta = NewSessionMeta { name, ..NewSessionMeta::default() };
    let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "_meta": {NAMESPACE: meta}});
    let result: Box<RawValue> = live.call(ui, "session/fork", &params)?;
    let made = NewSessionResult::from_raw(&result)?;
    Ok(ui.relay_line(&made.session_id.into())?)
}

fn change<P: Serialize>(
    which: &Which,
    care: Care,
    method: &str,
    params: impl FnOnce(SessionRef) -> P,
    said: impl FnOnce(&SessionInfo) -> Text,
    ui: &mut Ui,
) -> Result {
    let mut connection = ui.door().connect()?;
    let session = find(&mut connection, which, care, ui)?.exactly();
    let info: SessionInfo = connection.call(method, &params(session))?;
    ui.done(said(&info))
}

fn reseeded(session: &SessionInfo) -> Text {
    let said = text!(
        "the next prompt of {} continues in a new session of {}",
        session.handle(),
        session.agent
    );
    match (session.state, &session.reason, &session.hint) {
        (SessionState::Blocked, Some(reason), Some(hint)) => {
            text!("{}\nbefore that, {}: {}", said, reason, hint)
        }
        _ => said,
    }
}
