//! `acpctl session …`.

mod export;
mod log;
mod remove;
mod reseed;
mod search;
mod settings;
mod undo;
mod worktree;

use acp_wire::acp::NewSessionResult;
use acpd_api::{
    AgentInfo, AgentRef, ArchiveFilter, ClientMeta, ExitCode, MoveParams, NAMESPACE,
    NewSessionMeta, RenameParams, SessionInfo, SessionList, SessionListParams, SessionRef,
    TitleParams, UndoParams, method,
};
use acpd_client::Connection;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cli::{Format, Json, SessionCommand, Which};
use crate::dirs::{directory, utf8};
use crate::door::{Door, initialize_params};
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::{card, table};
use crate::live::Live;
use crate::lookup::{Care, find, find_live};
use crate::text::text;
use crate::ui::Ui;

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
            let card = card(&info, human::now(), ui.out_paint());
            (if json.json { ui.json(&info) } else { ui.print(card) }).map_err(CommandError::from)
        }
        SessionCommand::Log(args) => log::log(&args, door, ui),
        SessionCommand::Search(args) => search::search(&args, door, ui),
        SessionCommand::Export { which, format, json } => {
            let format = if json { Format::Json } else { format };
            export::export(&Which::from(&which), format, door, ui)
        }
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
                Some(name) => ui.say(text!("session {} is `{}` now", info.session_id, name)),
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
                    ui.say(text!("the title of {} is `{}` now", info.handle(), title));
                }
                None => ui.say(text!("{} has no title now", info.handle())),
            }
            Ok(())
        }
        SessionCommand::Archive { which: session } => {
            let info = change(&session, Care::Exact, door, ui, |session, connection| {
                Ok(connection.call(method::SESSION_ARCHIVE, &session)?)
            })?;
            ui.say(text!(
                "{} is archived; the next prompt takes it out of the archive",
                info.handle()
            ));
            Ok(())
        }
        SessionCommand::Unarchive { which: session } => {
            let info = change(&session, Care::Guess, door, ui, |session, connection| {
                Ok(connection.call(method::SESSION_UNARCHIVE, &session)?)
            })?;
            ui.say(text!("{} is out of the archive", info.handle()));
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
            ui.say(text!("{} works in {} now", info.handle(), info.cwd));
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
        SessionCommand::Rm(args) => remove::remove(&args, door, ui),
        SessionCommand::Undo { session, agent, all, since } => {
            let params = UndoParams { session, agent, since };
            if all { undo::undo_all(&params, door, ui) } else { undo::undo(&params, door, ui) }
        }
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
    if json.json {
        return Ok(ui.json(&list)?);
    }
    if list.sessions.is_empty() && *params != SessionListParams::default() {
        ui.say("no session matches");
        return Ok(());
    }
    if list.sessions.is_empty() {
        ui.say("no sessions; start one with `acpctl run -s NAME PROMPT`");
        return Ok(());
    }
    Ok(ui.print(table(&list.sessions, human::now(), ui.out_paint(), ui.out_width()))?)
}

/// Copies a session, with its directory and its MCP servers.
fn fork(session: &Which, name: Option<String>, door: Door, ui: &mut Ui) -> Result {
    let mut live = Live::new(door.lasting_link()?)?;
    let info = find_live(&mut live, session, ui)?;
    let agent = Some(info.agent.raw().to_owned());
    let meta = ClientMeta { agent, notices: true, ..ClientMeta::default() };
    ui.spin("forking");
    let _: Box<RawValue> = live.call(ui, "initialize", &initialize_params(&meta))?;
    let meta = NewSessionMeta { name, ..NewSessionMeta::default() };
    let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "_meta": {NAMESPACE: meta}});
    let result: Box<RawValue> = live.call(ui, "session/fork", &params)?;
    let made = NewSessionResult::from_raw(&result)
        .map_err(|error| CommandError::because(ExitCode::Error, &error))?;
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
