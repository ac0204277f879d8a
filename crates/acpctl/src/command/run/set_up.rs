//! Settings that a session gets before its prompt is sent.

use acp_wire::acp::{SetConfigOptionParams, SetModeParams};
use acpd_api::{SessionInfo, SessionRef, Untrusted, method};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::turn::Turn;
use crate::cli::SetUp;
use crate::error::{CommandError, Result};
use crate::paint::DIM;
use crate::settings::{ConfigOption, Settings};
use crate::text::{Text, shell_word, text};

impl SetUp {
    fn is_empty(&self) -> bool {
        self.model.is_none() && self.mode.is_none() && self.set.is_empty()
    }
}

/// Sets up a session that was there before. What was set before an error stays set, and was told.
pub(super) fn set_up(turn: &mut Turn<'_>, session: &SessionInfo, wanted: &SetUp) -> Result {
    if wanted.is_empty() {
        return Ok(());
    }
    let params = json!({"sessionId": session.session_id, "cwd": session.cwd, "mcpServers": []});
    let result: Box<RawValue> = turn.call("session/resume", &params)?;
    apply(turn, session.session_id.raw(), Settings::from_raw(&result), wanted)
}

/// Sets up a session that was begun for this prompt. On an error it is deleted: nobody has said anything in it.
pub(super) fn set_up_new(
    turn: &mut Turn<'_>,
    session_id: &str,
    settings: Settings,
    wanted: &SetUp,
) -> Result {
    let Err(error) = apply(turn, session_id, settings, wanted) else { return Ok(()) };
    let session = SessionRef { session: session_id.to_owned(), ..SessionRef::default() };
    match turn.try_call::<Value>(method::SESSION_REMOVE, &session) {
        Ok(Ok(_)) => Err(error),
        _ => {
            let id = Untrusted::from(session_id);
            let word = shell_word(&id);
            Err(error.hint(text!("session {} was made; delete it: acpctl session rm {}", id, word)))
        }
    }
}

/// The model comes first: what modes and options there are may depend on it.
fn apply(turn: &mut Turn<'_>, session_id: &str, mut settings: Settings, wanted: &SetUp) -> Result {
    if let Some(model) = &wanted.model {
        let Some(option) = settings.of_category("model") else {
            return Err(nothing_to_choose("models", &settings));
        };
        let (id, value) = (option.id.clone(), option.chosen(model)?);
        set(turn, session_id, &mut settings, &id, &value)?;
    }
    if let Some(mode) = &wanted.mode {
        set_mode(turn, session_id, &mut settings, mode)?;
    }
    for (option, value) in &wanted.set {
        let option = settings.option(option)?;
        let (id, value) = (option.id.clone(), option.chosen(value)?);
        set(turn, session_id, &mut settings, &id, &value)?;
    }
    Ok(())
}

fn set_mode(
    turn: &mut Turn<'_>,
    session_id: &str,
    settings: &mut Settings,
    wanted: &str,
) -> Result {
    let Some(modes) = &settings.modes else {
        let Some(option) = settings.of_category("mode") else {
            return Err(nothing_to_choose("modes", settings));
        };
        let (id, value) = (option.id.clone(), option.chosen(wanted)?);
        return set(turn, session_id, settings, &id, &value);
    };
    let mode = modes.find(wanted)?;
    let params = SetModeParams { session_id, mode_id: mode.id.raw() };
    let _: Value = turn.call("session/set_mode", &params)?;
    tell(turn, text!("mode: {}", mode.name.as_ref().unwrap_or(&mode.id)));
    Ok(())
}

fn set(
    turn: &mut Turn<'_>,
    session_id: &str,
    settings: &mut Settings,
    option: &Untrusted,
    value: &Value,
) -> Result {
    let value = to_raw_value(value).map_err(std::io::Error::from)?;
    let params = SetConfigOptionParams::new(session_id, option.raw(), &value);
    let mut result: Value = turn.call("session/set_config_option", &params)?;
    // What the agent says counts: it may have set something else, too.
    let now = ConfigOption::list(result["configOptions"].take());
    for changed in now.iter().filter(|now| !settings.options.contains(now)) {
        tell(turn, changed.sentence());
    }
    settings.options = now;
    Ok(())
}

fn tell(turn: &mut Turn<'_>, line: Text) {
    turn.ui.say(turn.ui.err_paint().apply(DIM, line));
}

fn nothing_to_choose(what: &'static str, settings: &Settings) -> CommandError {
    let failed = CommandError::usage(text!("the agent offers no {} to choose", what));
    let options = settings.options.iter().map(|option| text!("`{}`", option.id));
    let options = Text::join(options, ", ");
    if options.is_empty() {
        failed
    } else {
        failed.hint(text!("`--set OPTION=VALUE` sets its options: {}", options))
    }
}
