//! Finds the session of a prompt, or begins one.

use std::path::Path;

use acp_wire::ErrorObject;
use acp_wire::acp::NewSessionResult;
use acpd_api::{
    AttachParams, AttachResult, LabelParams, NAMESPACE, NewSessionMeta, Reason, RemoveParams, Role,
    SessionInfo, SessionRef, Status, StatusParams, Untrusted, escape, method,
};
use acpd_client::worktree::{Worktree, has_changes};
use acpd_client::{Connection, error_data};
use acpd_view::Settings;
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Run;
use super::turn::Turn;
use crate::daemon::IN_USE;
use crate::dirs::{current_dir, utf8};
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::lookup::{self, Care, Named, Wanted};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;
use crate::{default_agent, human, info, settings};

pub(super) fn open<'u>(
    args: &mut Run,
    dir: &Path,
    has_to_begin: bool,
    mut connection: Connection,
    ui: &'u mut Ui,
) -> Result<Turn<'u>> {
    let cwd = utf8(dir)?;
    let found = existing(args, &cwd, &mut connection, ui)?;
    if let Some(session) = found.as_ref().filter(|_| has_to_begin) {
        return Err(CommandError::usage(text!("session {} exists", session.handle()))
            .hint("`--worktree` starts a new session; choose another name"));
    }
    if found.is_none() && !has_to_begin {
        choose_agent(args, &cwd, &mut connection, ui)?;
    }
    let mut turn = Turn::new(Live::new(connection)?, ui, &args.turn);
    let agent = found.as_ref().map(|session| session.agent.raw().to_owned());
    let agent = agent.or(args.agent.clone());
    turn.bind(agent, &cwd)?;
    turn.session_id = match found {
        Some(session) => attach(&mut turn, session.session_id.raw(), &args.set_up)?,
        None => {
            let id = begin(&mut turn, args, &cwd)?;
            if args.session.is_some() || turn.ui.can_ask() && !args.turn.detach {
                turn.ui.note(begun(args, &id, &cwd)?);
            }
            let default_in = turn.profile.is_none().then_some(&*cwd);
            if default_in.is_some() || turn.ui.can_ask() {
                report_config(&mut turn, default_in)?;
            }
            id
        }
    };
    Ok(turn)
}

fn choose_agent(args: &mut Run, cwd: &str, connection: &mut Connection, ui: &mut Ui) -> Result {
    if args.agent.is_none() && ui.can_ask() {
        let daemon = default_agent::daemon_for(cwd, connection)?;
        args.agent = default_agent::ask_if_found(&daemon, connection, ui)?;
    }
    Ok(())
}

/// Begins a session in a new worktree, which is removed if that fails.
pub(super) fn open_in_worktree<'u>(
    args: &mut Run,
    name: Option<String>,
    dir: &Path,
    mut connection: Connection,
    ui: &'u mut Ui,
) -> Result<Turn<'u>> {
    // Ask before making anything: Ctrl-C at the question leaves nothing behind.
    choose_agent(args, &utf8(dir)?, &mut connection, ui)?;
    let worktree = Worktree::make(dir, name.as_deref().or(args.session.as_deref()))?;
    args.session = args.session.take().or(name);
    let inside = worktree.inside(dir).map_err(CommandError::from);
    let opened = inside.and_then(|inside| open(args, &inside, true, connection, ui));
    let turn = opened.map_err(|error| match worktree.remove() {
        Ok(()) => error,
        Err(_) => error.hint(text!(
            "remove its worktree: git worktree remove {}",
            shell_word(&Untrusted::from(&worktree.path))
        )),
    })?;
    let (path, branch) = (Untrusted::from(&worktree.path), Untrusted::from(&worktree.branch));
    turn.ui.note(text!("worktree {}, branch {}", path, branch));
    if let Some(warning) = &worktree.warning {
        let warning = Untrusted::from(warning);
        turn.ui.say(text!("warning: the worktree was created, but a hook failed: {}", warning));
    }
    if has_changes(dir)? {
        turn.ui.note("uncommitted changes are not in the worktree");
    }
    Ok(turn)
}

fn existing(
    args: &Run,
    cwd: &str,
    connection: &mut Connection,
    ui: &mut Ui,
) -> Result<Option<SessionInfo>> {
    let agent = args.agent.as_deref();
    if args.goes_on {
        let session = lookup::to_continue(cwd, agent, connection)?;
        if ui.can_ask() {
            ui.note(text!("continuing {} ({})", session.handle(), session.agent));
        }
        return Ok(Some(session));
    }
    let wanted = |text| Wanted::new(text, agent, cwd.to_owned());
    if let Some(session) = &args.resume {
        let wanted = wanted(session);
        let list = wanted.list(connection)?;
        return wanted.choose(list, Care::Guess, |note| ui.note(note)).map(Some);
    }
    let Some(name) = &args.session else { return Ok(None) };
    let wanted = wanted(name);
    let list = wanted.beginning(connection)?;
    let other = wanted.of_others(&list).cloned();
    match wanted.named(list, |note| ui.note(note))? {
        Named::Found(session) => Ok(Some(*session)),
        Named::New(others) => {
            if let Some(other) = other {
                ui.note(text!(
                    "{} also has a session `{}` here: name the agent from now on (`-a`)",
                    other.agent,
                    escape::one_line(name)
                ));
            }
            report_others(ui, &others, name);
            Ok(None)
        }
    }
}

fn begun(args: &Run, id: &str, cwd: &str) -> Result<Text> {
    if let Some(name) = &args.session {
        return Ok(text!("new session {}", Untrusted::from(name)));
    }
    let shown = Untrusted::from(id);
    let how = match utf8(&current_dir()?) {
        Ok(here) if here == cwd => "-c".into(),
        _ => text!("-s {}", shell_word(&shown)),
    };
    Ok(text!("session {}; continue with: acpctl run {} ...", shown, how))
}

/// A name applies to one directory, but the user may mean a session in another one.
fn report_others(ui: &mut Ui, others: &[SessionInfo], name: &str) {
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

/// Reports a possibly unexpected agent: the configuration has changed, or it names no agent and
/// none is installed. `default_in` is set if the session uses the default agent of this directory.
fn report_config(turn: &mut Turn<'_>, default_in: Option<&str>) -> Result {
    let params = StatusParams { cwd: default_in.map(str::to_owned), ..IN_USE };
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

/// Begins a session, or joins one that another client has just begun with this name.
fn begin(turn: &mut Turn<'_>, args: &Run, cwd: &str) -> Result<String> {
    let error = match make(turn, args.session.as_deref(), &[], cwd, &args.set_up)? {
        Ok(id) => return Ok(id),
        Err(error) => error,
    };
    match error_data(&error) {
        Some(data) if data.reason == Reason::NameTaken && data.session_id.is_some() => {
            attach(turn, data.session_id.unwrap_or_default().raw(), &args.set_up)
        }
        _ => Err(CommandError::rpc(&error)),
    }
}

/// Creates and configures a session, with `labels` and those of the command line. Returns its id, or
/// the error of the daemon or the agent.
pub(super) fn make(
    turn: &mut Turn<'_>,
    name: Option<&str>,
    labels: &[Untrusted],
    cwd: &str,
    wanted: &SetUp,
) -> Result<Result<String, ErrorObject>> {
    let mut params = json!({"cwd": cwd, "mcpServers": []});
    let labels = labels.iter().map(|label| label.raw().to_owned()).chain(wanted.labels.clone());
    let labels = Some(labels.collect::<Vec<_>>()).filter(|labels| !labels.is_empty());
    let name = name.map(str::to_owned);
    let meta = NewSessionMeta { name, labels, ..NewSessionMeta::default() };
    if meta != NewSessionMeta::default() {
        params["_meta"] = json!({NAMESPACE: meta});
    }
    let result = match turn.try_call::<Box<RawValue>>("session/new", &params)? {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    let new = NewSessionResult::from_raw(&result)?;
    let settings = Settings::from_raw(&result);
    turn.show_from(&Untrusted::from(&*new.session_id), &cwd.into(), settings.clone());
    set_up_new(turn, &new.session_id, settings, wanted)?;
    Ok(Ok(new.session_id.into_owned()))
}

/// Joins and configures a session. Returns its full id.
fn attach(turn: &mut Turn<'_>, session_id: &str, wanted: &SetUp) -> Result<String> {
    let session = SessionRef::to(&turn.agent, session_id);
    let params = AttachParams { session, after: None, role: Role::Controller };
    let AttachResult { session } = turn.call(method::SESSION_ATTACH, &params)?;
    turn.join(&session)?;
    if !wanted.labels.is_empty() {
        let (session, add) = (session.exactly(), wanted.labels.clone());
        let params = LabelParams { session, add, ..LabelParams::default() };
        let _: SessionInfo = turn.call(method::SESSION_LABEL, &params)?;
    }
    set_up(turn, &session, wanted)?;
    Ok(session.session_id.into_raw())
}

// Settings that a session gets before its prompt is sent.
#[derive(Debug, Args)]
pub(super) struct SetUp {
    /// Use this model: id or name.
    #[arg(long)]
    model: Option<String>,
    /// Switch to this mode: id or name.
    #[arg(long)]
    mode: Option<String>,
    /// Set an option, like `session set`.
    #[arg(long, value_name = "OPTION=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Add this label to the session that gets the prompt; may be repeated.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (option, value) = text.split_once('=').ok_or("not OPTION=VALUE")?;
    Ok((option.to_owned(), value.to_owned()))
}

/// Configures an existing session. Settings before an error stay, and were reported.
fn set_up(turn: &mut Turn<'_>, session: &SessionInfo, wanted: &SetUp) -> Result {
    if wanted.model.is_none() && wanted.mode.is_none() && wanted.set.is_empty() {
        return Ok(());
    }
    let params = json!({"sessionId": session.session_id, "cwd": session.cwd, "mcpServers": []});
    let result: Box<RawValue> = turn.call("session/resume", &params)?;
    apply(turn, session.session_id.raw(), Settings::from_raw(&result), wanted)
}

/// Configures a new session. On an error it is deleted: it has no messages.
fn set_up_new(turn: &mut Turn<'_>, session_id: &str, settings: Settings, wanted: &SetUp) -> Result {
    let Err(error) = apply(turn, session_id, settings, wanted) else { return Ok(()) };
    let session = SessionRef::to(&turn.agent, session_id);
    let params = RemoveParams { session, now: true };
    match turn.try_call::<Value>(method::SESSION_REMOVE, &params) {
        Ok(Ok(_)) => Err(error),
        _ => {
            let id = Untrusted::from(session_id);
            Err(error.hint(text!(
                "session {} was created; delete it: acpctl session rm {}",
                id,
                shell_word(&id)
            )))
        }
    }
}

/// Sets the model first, because modes and options may depend on it.
fn apply(turn: &mut Turn<'_>, session_id: &str, mut settings: Settings, wanted: &SetUp) -> Result {
    let session = Untrusted::from(session_id);
    if let Some(model) = &wanted.model {
        let id = of_category(&settings, "model", "models")?;
        set(turn, &session, &mut settings, &id, model)?;
    }
    if let (Some(mode), Some(modes)) = (&wanted.mode, &mut settings.modes) {
        let mut call = |method, params| turn.call(method, &params);
        let mode = settings::switch(modes, &session, mode, &mut call)?;
        turn.ui.note(text!("mode: {}", mode.name.as_ref().unwrap_or(&mode.id)));
    } else if let Some(mode) = &wanted.mode {
        let id = of_category(&settings, "mode", "modes")?;
        set(turn, &session, &mut settings, &id, mode)?;
    }
    for (option, value) in &wanted.set {
        let id = settings::option(&settings, option)?.id.clone();
        set(turn, &session, &mut settings, &id, value)?;
    }
    Ok(())
}

fn of_category(settings: &Settings, category: &str, what: &'static str) -> Result<Untrusted> {
    if let Some(option) = settings.of_category(category) {
        return Ok(option.id.clone());
    }
    let failed = CommandError::usage(text!("the agent has no {} to choose from", what));
    let options = settings.options.iter().map(|option| text!("`{}`", option.id));
    let options = Text::join(options, ", ");
    Err(if options.is_empty() {
        failed
    } else {
        failed.hint(text!("set its options with `--set OPTION=VALUE`: {}", options))
    })
}

fn set(
    turn: &mut Turn<'_>,
    session: &Untrusted,
    settings: &mut Settings,
    option: &Untrusted,
    value: &str,
) -> Result {
    let mut call = |method, params| turn.call(method, &params);
    let (_, changed) = settings::set(settings, session, option, value, &mut call)?;
    for option in changed {
        turn.ui.note(option.sentence());
    }
    Ok(())
}
