//! Finds the session of a prompt, or begins one.

use std::path::Path;

use acp_wire::ErrorObject;
use acp_wire::acp::NewSessionResult;
use acpd_api::{
    AgentInfo, AgentRef, AttachParams, AttachResult, NAMESPACE, NewSessionMeta, Reason, Role,
    SessionInfo, SessionList, SessionRef, Status, StatusParams, escape, method,
};
use acpd_client::error_data;
use acpd_view::Settings;
use serde_json::json;
use serde_json::value::RawValue;

use super::Run;
use super::set_up::{SetUp, set_up, set_up_new};
use super::turn::Turn;
use crate::error::{CommandError, Result};
use crate::lookup::{Care, Named, Wanted};
use crate::text::{shell_word, text};
use crate::ui::Ui;
use crate::{default_agent, human, info, install, last, lookup};

/// The session that the command line names, if it is there.
pub(super) fn existing(turn: &mut Turn<'_>, args: &Run, cwd: &str) -> Result<Option<SessionInfo>> {
    let agent = args.agent.as_deref();
    if args.goes_on {
        return last_used(turn, agent, cwd).map(Some);
    }
    let wanted = |text| Wanted::new(text, agent, cwd.to_owned());
    match (&args.resume, &args.session) {
        (Some(session), _) => {
            let list: SessionList = turn.call(method::SESSION_LIST, &lookup::all())?;
            Ok(Some(wanted(session).choose(list, Care::Guess)?.told(turn.ui)))
        }
        (None, Some(name)) => {
            let list: SessionList = turn.call(method::SESSION_LIST, &lookup::all())?;
            let beside = wanted(name).of_others(&list).cloned();
            match wanted(name).named(list)? {
                Named::Found(choice) => Ok(Some(choice.told(turn.ui))),
                Named::New(others) => {
                    if let Some(other) = beside {
                        turn.ui.note(text!(
                            "{} also has a session `{}` here: name the agent from now on (`-a`)",
                            other.agent,
                            escape::one_line(name)
                        ));
                    }
                    tell_others(turn.ui, &others, name);
                    Ok(None)
                }
            }
        }
        (None, None) => Ok(None),
    }
}

/// A name counts in its directory, but the one of another may have been meant all the same.
fn tell_others(ui: &mut Ui, others: &[SessionInfo], name: &str) {
    let line = match others {
        [other] if !Path::new(other.cwd.raw()).is_dir() => Some(text!(
            "new session `{}`; to move the one of `{}`, which is gone: \
             acpctl session move {} --cwd DIR",
            escape::one_line(name),
            other.cwd,
            shell_word(&other.session_id)
        )),
        others => lookup::elsewhere(others, name),
    };
    if let Some(line) = line {
        ui.note(line);
    }
}

/// Reports that a new session may be with another agent than expected: the configuration has changed, or
/// names no agent, and none is installed.
/// `default_in`: the session has the default agent of this directory.
pub(super) fn tell_config(turn: &mut Turn<'_>, default_in: Option<&str>) -> Result {
    let params = StatusParams { cwd: default_in.map(str::to_owned) };
    // Errors are ignored.
    let Ok(status) = turn.try_call::<Status>(method::STATUS, &params)? else { return Ok(()) };
    if let Some(changed) = &status.daemon.config_changed {
        let line = info::daemon::config_changed(changed, human::now());
        turn.ui.note(line);
    }
    let note = default_agent::note(&status.daemon).filter(|_| default_in.is_some());
    if let Some(note) = note {
        turn.ui.note(note);
    }
    Ok(())
}

/// Installs an agent that is not there, if the person at the terminal wants that: nothing is downloaded without.
pub(super) fn offer_to_install(turn: &mut Turn<'_>, agent: &str) -> Result {
    if !turn.ui.can_ask() {
        return Ok(());
    }
    let agent = AgentRef { agent: agent.to_owned() };
    match turn.try_call::<AgentInfo>(method::AGENT_SHOW, &agent)? {
        Ok(info) if install::can_install(&info) => {
            turn.ui.stop_spinning();
            install::install(&info, false, turn.ui)
        }
        // An unknown agent is reported by what follows.
        _ => Ok(()),
    }
}

fn last_used(turn: &mut Turn<'_>, agent: Option<&str>, cwd: &str) -> Result<SessionInfo> {
    let list = turn.call(method::SESSION_LIST, &last::of(cwd, agent))?;
    let session = last::used(list).ok_or_else(|| last::none(cwd, agent))?;
    if turn.ui.can_ask() {
        turn.ui.note(text!("continuing {} ({})", session.handle(), session.agent));
    }
    Ok(session)
}

/// Begins a session, or joins one that another client has begun by that name since we looked.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    args: &Run,
    cwd: &str,
    agent: Option<String>,
) -> Result<String> {
    let error = match make(turn, args.session.as_deref(), cwd, &args.set_up)? {
        Ok(id) => return Ok(id),
        Err(error) => error,
    };
    match error_data(&error) {
        Some(data) if data.reason == Reason::NameTaken && data.session_id.is_some() => {
            let id = data.session_id.unwrap_or_default().into_raw();
            let session = attach(turn, id, agent)?;
            set_up(turn, &session, &args.set_up)?;
            Ok(session.session_id.into_raw())
        }
        _ => Err(CommandError::rpc(&error)),
    }
}

/// Makes a session and sets it up; returns its id, or why the daemon or the agent did not make it.
pub(super) fn make(
    turn: &mut Turn<'_>,
    name: Option<&str>,
    cwd: &str,
    wanted: &SetUp,
) -> Result<std::result::Result<String, ErrorObject>> {
    let mut params = json!({"cwd": cwd, "mcpServers": []});
    if let Some(name) = name {
        let meta = NewSessionMeta { name: Some(name.to_owned()), ..NewSessionMeta::default() };
        params["_meta"] = json!({NAMESPACE: meta});
    }
    let result = match turn.try_call::<Box<RawValue>>("session/new", &params)? {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    let new = NewSessionResult::from_raw(&result)?;
    let settings = Settings::from_raw(&result);
    turn.screen.transcript.within(cwd.into());
    turn.screen.transcript.know(settings.clone());
    set_up_new(turn, &new.session_id, settings, wanted)?;
    Ok(Ok(new.session_id.into_owned()))
}

/// Takes part in a session from now on.
pub(super) fn attach(
    turn: &mut Turn<'_>,
    session_id: String,
    agent: Option<String>,
) -> Result<SessionInfo> {
    let session = SessionRef { session: session_id, agent, ..SessionRef::default() };
    let params = AttachParams { session, after: None, role: Role::Controller };
    let result: AttachResult = turn.call(method::SESSION_ATTACH, &params)?;
    turn.join(&result.session)?;
    Ok(result.session)
}
