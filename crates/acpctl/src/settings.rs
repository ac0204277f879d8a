//! Settings of a session: finding and changing them by the user's words.

use acp_wire::acp::{SetConfigOptionParams, SetModeParams};
use acpd_api::{Untrusted, escape};
use acpd_view::{ConfigOption, Mode, Modes, Settings};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::error::{CommandError, Result};
use crate::text::{Text, text};

pub(crate) type Call<'a> = &'a mut dyn FnMut(&'static str, Value) -> Result<Value>;

/// Finds an option by id or name; the error lists all options.
pub(crate) fn option<'a>(settings: &'a Settings, wanted: &str) -> Result<&'a ConfigOption> {
    let none = text!("no option `{}`", escape::one_line(wanted));
    let options = settings.options.iter().collect();
    chosen(options, |option| (&option.id, option.name.as_ref()), wanted, none)
}

/// Switches to the mode with this id or name.
pub(crate) fn switch(
    modes: &mut Modes,
    session: &Untrusted,
    wanted: &str,
    call: Call<'_>,
) -> Result<Mode> {
    let none = text!("no mode `{}`", escape::one_line(wanted));
    let all = modes.available_modes.iter().collect();
    let mode = chosen(all, |mode| (&mode.id, mode.name.as_ref()), wanted, none)?.clone();
    let params = SetModeParams { session_id: session.raw(), mode_id: mode.id.raw() };
    call("session/set_mode", json!(params))?;
    modes.current_mode_id = mode.id.clone();
    Ok(mode)
}

/// Sets an option. Returns all options as the agent wrote them, and the changed ones, because the
/// agent may have set other options too.
pub(crate) fn set(
    settings: &mut Settings,
    session: &Untrusted,
    option: &Untrusted,
    wanted: &str,
    call: Call<'_>,
) -> Result<(Value, Vec<ConfigOption>)> {
    let value = value(self::option(settings, option.raw())?, wanted)?;
    let value = to_raw_value(&value).map_err(std::io::Error::from)?;
    let params = SetConfigOptionParams::new(session.raw(), option.raw(), &value);
    let mut result = call("session/set_config_option", json!(params))?;
    let raw = result["configOptions"].take();
    let now = ConfigOption::list(&raw);
    let before = std::mem::replace(&mut settings.options, now);
    let changed = settings.options.iter().filter(|now| !before.contains(now)).cloned().collect();
    Ok((raw, changed))
}

/// Finds a value by itself or its name; `on`, `yes` and similar words for a boolean. The error
/// lists all values.
fn value(option: &ConfigOption, wanted: &str) -> Result<Value> {
    let none = text!("option `{}` has no value `{}`", option.id, escape::one_line(wanted));
    if option.current_value.is_boolean() {
        return match wanted {
            "true" | "on" | "yes" => Ok(json!(true)),
            "false" | "off" | "no" => Ok(json!(false)),
            _ => Err(unknown(none, &["true".into(), "false".into()])),
        };
    }
    let choices = option.choices().collect();
    let choice = chosen(choices, |choice| (&choice.value, choice.name.as_ref()), wanted, none)?;
    Ok(json!(choice.value))
}

/// Finds an item by id, or else by name; the error lists all items.
fn chosen<'a, T>(
    all: Vec<&'a T>,
    names: impl Fn(&'a T) -> (&'a Untrusted, Option<&'a Untrusted>),
    wanted: &str,
    none: Text,
) -> Result<&'a T> {
    let has_name = |name: &Untrusted| name.raw().to_lowercase() == wanted.to_lowercase();
    let by_id = all.iter().find(|one| *names(one).0 == *wanted);
    let found = by_id.or_else(|| all.iter().find(|one| names(one).1.is_some_and(has_name)));
    found.copied().ok_or_else(|| unknown(none, all.iter().map(|one| names(one).0)))
}

fn unknown<'a>(text: Text, known: impl IntoIterator<Item = &'a Untrusted>) -> CommandError {
    let known = Text::join(known.into_iter().map(|id| text!("`{}`", id)), ", ");
    let failed = CommandError::usage(text);
    if known.is_empty() { failed } else { failed.hint(text!("choose one of {}", known)) }
}
