//! Settings that a session gets before its prompt is sent.

use acpd_api::{RemoveParams, SessionInfo, SessionRef, Untrusted, method};
use acpd_view::Settings;
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::turn::Turn;
use crate::error::{CommandError, Result};
use crate::settings;
use crate::text::{Text, shell_word, text};

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
}

fn setting(text: &str) -> std::result::Result<(String, String), &'static str> {
    let (option, value) = text.split_once('=').ok_or("not OPTION=VALUE")?;
    Ok((option.to_owned(), value.to_owned()))
}

impl SetUp {
    fn is_empty(&self) -> bool {
        self.model.is_none() && self.mode.is_none() && self.set.is_empty()
    }
}

/// Configures an existing session. Settings before an error stay, and were reported.
pub(super) fn set_up(turn: &mut Turn<'_>, session: &SessionInfo, wanted: &SetUp) -> Result {
    if wanted.is_empty() {
        return Ok(());
    }
    let params = json!({"sessionId": session.session_id, "cwd": session.cwd, "mcpServers": []});
    let result: Box<RawValue> = turn.call("session/resume", &params)?;
    apply(turn, session.session_id.raw(), Settings::from_raw(&result), wanted)
}

/// Configures a new session. On an error it is deleted: it has no messages.
pub(super) fn set_up_new(
    turn: &mut Turn<'_>,
    session_id: &str,
    settings: Settings,
    wanted: &SetUp,
) -> Result {
    let Err(error) = apply(turn, session_id, settings, wanted) else { return Ok(()) };
    let session = SessionRef { session: session_id.to_owned(), ..SessionRef::default() };
    let params = RemoveParams { session, now: true };
    match turn.try_call::<Value>(method::SESSION_REMOVE, &params) {
        Ok(Ok(_)) => Err(error),
        _ => {
            let id = Untrusted::from(session_id);
            let word = shell_word(&id);
            Err(error.hint(text!(
                "session {} was created; delete it: acpctl session rm {}",
                id,
                word
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
