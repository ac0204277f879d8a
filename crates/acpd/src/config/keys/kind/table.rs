//! Tables and lists of names: environment variables, members of JSON.

use acpd_api::NAMESPACE;
use serde_json::json;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{Kind, inline, quoted, quoted_list};
use crate::config::keys::fault::{Fault, all, list, string, table};
use crate::config::keys::schema::{Schema, VARIABLE, WITHOUT_NUL, entries_of, list_of, text};
use crate::config::keys::variables::Variables;

/// Environment variables with their values. Each inner table adds to the outer ones.
pub(crate) struct Environment;

impl Kind for Environment {
    type Value = Variables;

    const ADDS_UP: bool = true;

    fn describe() -> String {
        "a table of strings".to_owned()
    }

    fn schema() -> Schema {
        entries_of(VARIABLE, &text(WITHOUT_NUL))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Variables, Fault> {
        all(table(value, &Self::describe())?.iter().map(variable)).map(Variables)
    }

    fn show(value: &Variables) -> String {
        inline(value.iter().map(|(name, value)| (name.as_str(), quoted(value))))
    }

    fn merge(slot: &mut Variables, new: Variables) {
        slot.0.extend(new.0);
    }
}

type Entry<'t, 'i> = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>);

/// A variable and its value, which stays out of all messages: it may be a secret.
fn variable((name, value): Entry<'_, '_>) -> Result<(String, String), Fault> {
    let name = name.get_ref();
    if name.is_empty() || name.contains(['=', '\0']) {
        let reason = format!("holds {name:?}, which cannot be the name of a variable");
        return Err(Fault::new(value, reason));
    }
    let text = string(value, "a table of strings").map_err(|fault| Fault {
        reason: format!("{} (the value of `{name}`)", fault.reason),
        ..fault.hint(format!("put the value of `{name}` in quotes"))
    })?;
    if text.contains('\0') {
        let reason = format!("cannot hold a NUL character (the value of `{name}`)");
        return Err(Fault::new(value, reason));
    }
    Ok((name.to_string(), text.to_owned()))
}

/// Names of environment variables, or beginnings of names followed by `*`. Each inner table adds
/// to the outer ones.
pub(crate) struct Names;

impl Kind for Names {
    type Value = Vec<String>;

    const ADDS_UP: bool = true;

    fn describe() -> String {
        "a list of names, or of beginnings of names like \"AWS_*\"".to_owned()
    }

    fn schema() -> Schema {
        list_of(&json!({"type": "string", "minLength": 1, "pattern": "^[^*=\\x00]*[*]?$"}))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| {
            let text = string(item, &Self::describe())?;
            let name = text.strip_suffix('*').unwrap_or(text);
            if text.is_empty() || name.contains(['*', '=', '\0']) {
                let reason = format!("holds {text:?}, which is not a name");
                return Err(Fault::new(item, reason).hint("a `*` may stand at the end only"));
            }
            Ok(text.to_owned())
        })
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }

    fn merge(slot: &mut Vec<String>, new: Vec<String>) {
        for name in new {
            if !slot.contains(&name) {
                slot.push(name);
            }
        }
    }
}

/// Names of members, each in the one before it.
pub(crate) struct Members;

impl Kind for Members {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of names like \"auth.gateway\"".to_owned()
    }

    fn schema() -> Schema {
        list_of(&text("^[^.]*[^.\\s][^.]*([.][^.]*[^.\\s][^.]*)*$"))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| {
            let text = string(item, &Self::describe())?;
            if text.split('.').any(|name| name.trim().is_empty()) {
                return Err(Fault::new(item, format!("holds {text:?}, which is not a name")));
            }
            // What is said to acpd is no business of an agent.
            if text.split('.').any(|name| name == NAMESPACE) {
                return Err(Fault::new(item, format!("holds {text:?}, which is acpd's own")));
            }
            Ok(text.to_owned())
        })
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }
}
