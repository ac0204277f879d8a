//! `acpctl session …`.

use acp_wire::acp::NewSessionResult;
use acp_wire::{Message, parse};
use acpd_api::{
    AgentInfo, AgentRef, ArchiveFilter, ClientMeta, Empty, ExitCode, InteractionList, LogParams,
    LogResult, MoveParams, NAMESPACE, NewSessionMeta, RenameParams, RestoreLevel, SessionInfo,
    SessionList, SessionListParams, SessionRef, SessionState, TitleParams, TurnState, Untrusted,
    escape, method,
};
use acpd_client::Connection;
use anstyle::Style;
use serde_json::json;
use serde_json::value::RawValue;

use super::agent::key_values;
use super::pending::waits;
use super::{
    Door, directory, export, initialize_params, reseed, search, session_ref, settings, utf8, which,
};
use crate::cli::{Session, Which};
use crate::error::{CommandError, Result};
use crate::human;
use crate::live::Live;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, RED, YELLOW};
use crate::screen::Screen;
use crate::table::{Cell, Table};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

/// Columns of a turn in the table: an agent may give any reason for its end.
const TURN: usize = 40;

/// Runs a `session` command.
pub(super) fn session(command: Session, door: Door, ui: &mut Ui) -> Result {
    match command {
        Session::Ls { agent, cwd, archived, all, json } => {
            let cwd = cwd.map(|dir| utf8(&directory(&dir)?)).transpose()?;
            let archived = match (archived, all) {
                (true, _) => Some(ArchiveFilter::Only),
                (_, true) => Some(ArchiveFilter::Include),
                _ => None,
            };
            let params = SessionListParams { agent, cwd, archived };
            let mut connection = door.connect()?;
            let list: SessionList = connection.call(method::SESSION_LIST, &params)?;
            // No sessions of an agent that does not exist is a mistake.
            if let (true, Some(agent)) = (list.sessions.is_empty(), params.agent.clone()) {
                let _: AgentInfo = connection.call(method::AGENT_SHOW, &AgentRef { agent })?;
            }
            if json.json {
                return Ok(ui.json(&list)?);
            }
            if list.sessions.is_empty() && params != SessionListParams::default() {
                ui.say("no session matches");
                return Ok(());
            }
            if list.sessions.is_empty() {
                ui.say("no sessions; begin one with `acpctl run -s NAME PROMPT`");
                return Ok(());
            }
            Ok(ui.print(table(&list.sessions, human::now(), ui.out_paint(), ui.out_width()))?)
        }
        Session::Show { which: session, json } => {
            let info: SessionInfo = door.connect()?.call(method::SESSION_SHOW, &which(&session))?;
            if json.json {
                return Ok(ui.json(&info)?);
            }
            Ok(ui.print(card(&info, human::now(), ui.out_paint()))?)
        }
        Session::Log { which: session, thoughts, json } => log(&session, thoughts, json, door, ui),
        Session::Search(args) => search::search(&args, door, ui),
        Session::Export { which, format } => export::export(&which, format, door, ui),
        Session::Mode { which, mode, json } => {
            settings::mode(&which, mode.as_deref(), json, door, ui)
        }
        Session::Set { which, option, value, json } => {
            let setting = option.as_deref().map(|option| (option, value.as_deref()));
            settings::set(&which, setting, json, door, ui)
        }
        Session::Commands { which, json } => settings::commands(&which, json, door, ui),
        Session::Rename { which: session, name, clear: _ } => {
            let params = RenameParams { session: which(&session), name };
            let info: SessionInfo = door.connect()?.call(method::SESSION_RENAME, &params)?;
            match &info.name {
                Some(name) => ui.say(text!("session {} is `{}` now", info.session_id, name)),
                None => ui.say(text!("session {} has no name now", info.session_id)),
            }
            Ok(())
        }
        Session::Title { which: session, title, clear: _ } => {
            let params = TitleParams { session: which(&session), title };
            let info: SessionInfo = door.connect()?.call(method::SESSION_TITLE, &params)?;
            match &info.title {
                Some(title) => {
                    ui.say(text!("the title of {} is `{}` now", handle(&info), title));
                }
                None => ui.say(text!("{} has no title now", handle(&info))),
            }
            Ok(())
        }
        Session::Archive { which: session } => {
            let info: SessionInfo =
                door.connect()?.call(method::SESSION_ARCHIVE, &which(&session))?;
            ui.say(text!("{} is in the archive; the next prompt takes it out", handle(&info)));
            Ok(())
        }
        Session::Unarchive { which: session } => {
            let info: SessionInfo =
                door.connect()?.call(method::SESSION_UNARCHIVE, &which(&session))?;
            ui.say(text!("{} is out of the archive", handle(&info)));
            Ok(())
        }
        Session::Fork { which, name } => fork(&which, name, door, ui),
        Session::Move { which: session, cwd } => {
            let cwd = utf8(&directory(&cwd)?)?;
            let params = MoveParams { session: which(&session), cwd };
            let info: SessionInfo = door.connect()?.call(method::SESSION_MOVE, &params)?;
            ui.say(text!("{} works in {} now", handle(&info), info.cwd));
            Ok(())
        }
        Session::Reseed { which, discard } => reseed::reseed(&which, discard, door, ui),
        Session::Close { which: session } => {
            let info: SessionInfo =
                door.connect()?.call(method::SESSION_CLOSE, &which(&session))?;
            ui.say(text!("{} is closed; the next prompt brings it back", handle(&info)));
            Ok(())
        }
        Session::Rm { sessions, agent } => {
            let mut connection = door.connect()?;
            let mut failed: Option<CommandError> = None;
            for session in &sessions {
                let Err(error) = remove(&mut connection, session, agent.as_deref(), ui) else {
                    continue;
                };
                // The others are deleted all the same; the first error decides the exit code.
                failed = Some(match failed {
                    Some(before) => {
                        ui.talk(&before.render(ui.err_paint()));
                        error.with_code(before.code())
                    }
                    None => error,
                });
            }
            failed.map_or(Ok(()), Err)
        }
    }
}

/// Makes a session that goes on from where this one is, with its directory and its MCP servers.
fn fork(session: &Which, name: Option<String>, door: Door, ui: &mut Ui) -> Result {
    let mut live = Live::new(door.lasting_link()?)?;
    let info: SessionInfo = live.call(ui, method::SESSION_SHOW, &which(session))?;
    let agent = Some(info.agent.raw().to_owned());
    let meta = ClientMeta { agent, notices: true, ..ClientMeta::default() };
    ui.spin("forking");
    let _: Box<RawValue> = live.call(ui, "initialize", &initialize_params(&meta))?;
    let meta = NewSessionMeta { name, reuse: false };
    let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "_meta": {NAMESPACE: meta}});
    let result: Box<RawValue> = live.call(ui, "session/fork", &params)?;
    let made = NewSessionResult::from_raw(&result)
        .map_err(|error| CommandError::because(ExitCode::Error, &error))?;
    Ok(ui.relay_line(&made.session_id.into())?)
}

/// Deletes the session of exactly this name or id.
fn remove(connection: &mut Connection, wanted: &str, agent: Option<&str>, ui: &mut Ui) -> Result {
    let found: SessionInfo = connection.call(method::SESSION_SHOW, &session_ref(wanted, agent))?;
    let handle = handle(&found);
    if *handle != wanted && found.session_id != wanted {
        let text =
            text!("no session has exactly the name or the id `{}`", escape::one_line(wanted));
        return Err(CommandError::new(ExitCode::NotFound, text).hint(text!(
            "to delete `{}`: `acpctl session rm {}`",
            handle,
            shell_word(handle)
        )));
    }
    let session = found.session_id.raw().to_owned();
    let agent = Some(found.agent.raw().to_owned());
    let exactly = SessionRef { session, agent, ..SessionRef::default() };
    let Empty {} = connection.call(method::SESSION_REMOVE, &exactly)?;
    ui.say(text!("deleted {}", handle));
    Ok(())
}

/// Prints the journal page by page, and what its turn waits for.
fn log(session: &Which, thoughts: bool, json: bool, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let mut screen = Screen::whole(ui, thoughts);
    let mut params = LogParams { session: which(session), after: 0, limit: None };
    let mut in_turn = false;
    loop {
        let page: LogResult = connection.call(method::SESSION_LOG, &params)?;
        screen.of(&page.session_id);
        for entry in &page.entries {
            if json {
                ui.json_line(entry)?;
            } else if let Ok(Message::Notification { method, params }) =
                parse(entry.line.get().as_bytes())
            {
                in_turn =
                    method == method::TURN_STARTED || (in_turn && method != method::TURN_ENDED);
                screen.show(ui, &method, params.map_or("{}", |params| params.get()))?;
            }
        }
        match page.next {
            Some(next) => params.after = next,
            // Questions are not in the journal: they may be answered at any time.
            None if in_turn => return tell_questions(&mut connection, &page.session_id, ui),
            None => return Ok(()),
        }
    }
}

fn tell_questions(connection: &mut Connection, session: &Untrusted, ui: &mut Ui) -> Result {
    let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
    for open in list.interactions {
        if open.session_id.as_ref() == Some(session) {
            ui.say(ui.err_paint().apply(YELLOW, waits(&open)));
        }
    }
    Ok(())
}

/// Sessions as a table.
pub(super) fn table<'a>(
    sessions: impl IntoIterator<Item = &'a SessionInfo>,
    now: u64,
    paint: Paint,
    width: Option<usize>,
) -> Text {
    let titles = ["SESSION", "AGENT", "STATE", "TURN", "PROMPTS", "USED", "DIRECTORY", "TITLE"];
    let mut table = Table::new(titles);
    for session in sessions {
        let (turn, style) = turn(session, now);
        table.row([
            Cell::new(handle(session), BOLD),
            (&session.agent).into(),
            Cell::new(state(session), state_style(session.state)),
            Cell::new(turn.cut(TURN), style),
            text!("{}", session.prompts).into(),
            human::ago(session.updated, now).into(),
            (&session.cwd).into(),
            about(session).into(),
        ]);
    }
    table.render(paint, width)
}

fn card(session: &SessionInfo, now: u64, paint: Paint) -> Text {
    let mut state = paint.apply(state_style(session.state), word(session));
    let reason = session.reason.as_ref().filter(|reason| **reason != word(session));
    if let Some(reason) = reason {
        state += text!(": {}", reason);
    }
    let (turn, turn_style) = turn(session, now);
    let mut rows = vec![("session", Text::from(&session.session_id))];
    rows.extend(session.name.as_ref().map(|name| ("name", name.into())));
    rows.extend(session.title.as_ref().map(|title| ("title", title.into())));
    rows.extend([
        ("agent", Text::from(&session.agent)),
        ("directory", Text::from(&session.cwd)),
        ("state", state),
    ]);
    rows.extend(session.hint.as_ref().map(|hint| ("hint", hint.into())));
    rows.extend(restored(session).map(|kept| ("restored", kept.into())));
    rows.extend([
        ("turn", paint.apply(turn_style, turn)),
        ("prompts", text!("{}", session.prompts)),
        ("clients", text!("{}", session.clients)),
        ("journal", text!("{} entries", session.seq)),
        ("created", human::clock(session.created)),
        ("used", text!("{} ({})", human::clock(session.updated), human::ago(session.updated, now))),
    ]);
    key_values(&rows, paint)
}

/// Why a session cannot go on and what to do, else what it is about.
fn about(session: &SessionInfo) -> Text {
    let stuck = matches!(session.state, SessionState::Lost | SessionState::Blocked);
    let told = [&session.reason, &session.hint].into_iter().flatten().filter(|_| stuck);
    let told: Vec<Text> = told.map(Text::from).collect();
    if told.is_empty() { text!("{}", session.title.as_ref()) } else { Text::join(told, "; ") }
}

/// What people call it.
pub(super) fn handle(session: &SessionInfo) -> &Untrusted {
    session.name.as_ref().unwrap_or(&session.session_id)
}

fn turn(session: &SessionInfo, now: u64) -> (Text, Style) {
    let passed = human::duration(now.saturating_sub(session.turn.since));
    let queued = match session.queued {
        0 => Text::new(),
        queued => text!(" +{}", queued),
    };
    match session.turn.state {
        TurnState::Working => (text!("working {}{}", passed, queued), CYAN),
        TurnState::NeedsAction => (text!("needs you {}{}", passed, queued), YELLOW),
        TurnState::Idle => match session.turn.last.as_ref().map(Untrusted::raw) {
            None | Some("end_turn") => ("idle".into(), Style::new()),
            Some(last) => {
                let last = Untrusted::from(last.replace('_', " "));
                (text!("idle ({})", last), Style::new())
            }
        },
    }
}

/// Its state for a table, with a mark if the agent goes on with a summary.
fn state(session: &SessionInfo) -> Text {
    let is_reseeded = session.restore == Some(RestoreLevel::Reseeded);
    text!("{}{}", word(session), if is_reseeded { " (reseeded)" } else { "" })
}

/// What the last restore kept, if that is not all.
fn restored(session: &SessionInfo) -> Option<&'static str> {
    Some(match session.restore? {
        RestoreLevel::Resumed => "resumed: the agent has the conversation",
        RestoreLevel::Loaded => "loaded: the agent has the conversation",
        RestoreLevel::Reseeded => "reseeded: the agent has a summary; the history is whole",
        RestoreLevel::Lost => "lost: the agent has nothing of it; the history is whole",
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
    })
}

fn word(session: &SessionInfo) -> &'static str {
    match session.state {
        _ if session.archived => "archived",
        SessionState::Live => "live",
        SessionState::Parked => "parked",
        SessionState::Restoring => "restoring",
        SessionState::Blocked => "blocked",
        SessionState::Lost => "lost",
        SessionState::Closed => "closed",
    }
}

fn state_style(state: SessionState) -> Style {
    match state {
        SessionState::Live => GREEN,
        SessionState::Parked | SessionState::Closed => DIM,
        SessionState::Restoring => CYAN,
        SessionState::Blocked => YELLOW,
        SessionState::Lost => RED,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_says_what_the_last_restore_kept_if_that_is_not_all() {
        let row = |restore: &str| {
            let session = json!({"sessionId": "s", "agent": "demo", "cwd": "/w", "state": "live",
                "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0, "prompts": 1,
                "seq": 4, "created": 0, "updated": 0, "restore": restore});
            let session: SessionInfo = serde_json::from_value(session).unwrap();
            let card = card(&session, 0, Paint::plain()).to_string();
            card.lines()
                .find_map(|line| line.strip_prefix("restored"))
                .map(|row| row.trim().to_owned())
        };
        for kept in ["resumed", "loaded", "reseeded", "lost"] {
            assert!(row(kept).is_some_and(|row| row.starts_with(kept)), "{kept}");
        }
        assert_eq!((row("exact"), row("renewed")), (None, None));
    }
}
