//! Texts: names, addresses, lines, commands and directories.

use std::path::PathBuf;

use acpd_api::LogLevel;
use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use super::{Kind, quoted, quoted_list};
use crate::config::error::did_you_mean;
use crate::config::keys::fault::{Fault, list, string};
use crate::config::keys::schema::{Schema, WITHOUT_NUL, list_of, text};
use crate::log;

/// A host, or its address, and a port.
pub(crate) struct Address;

impl Kind for Address {
    type Value = Option<String>;

    fn describe() -> String {
        "an address like \"127.0.0.1:4000\"".to_owned()
    }

    fn schema() -> Schema {
        text("^[\\s\\S]+:[+]?[0-9]+$")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<String>, Fault> {
        let text = string(value, &Self::describe())?;
        let valid = text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if valid {
            Ok(Some(text.to_owned()))
        } else {
            Err(Fault::new(value, format!("must be {}, not {text:?}", Self::describe())))
        }
    }

    fn show(value: &Option<String>) -> String {
        value.as_deref().map_or_else(String::new, quoted)
    }
}

/// A line of text for people, or nothing.
pub(crate) struct Line;

impl Kind for Line {
    type Value = Option<String>;

    fn describe() -> String {
        "a string".to_owned()
    }

    fn schema() -> Schema {
        json!({"type": "string"})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<String>, Fault> {
        string(value, &Self::describe()).map(|text| Some(text.to_owned()))
    }

    fn show(value: &Option<String>) -> String {
        value.as_deref().map_or_else(String::new, quoted)
    }
}

/// What an agent's name must look like, said as a hint.
pub(crate) const NAME_RULE: &str =
    "a name is made of lower-case letters, digits and `-`, and begins with a letter";

/// The same as a pattern.
pub(crate) const NAME_PATTERN: &str = "^[a-z][a-z0-9-]*$";

/// Returns whether `name` can be the name of an agent: `[a-z][a-z0-9-]*`.
pub(crate) fn valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed)
}

/// What to log: a level, or a filter of the `tracing` library.
pub(crate) struct LogFilter;

impl Kind for LogFilter {
    type Value = String;

    fn describe() -> String {
        "\"error\", \"warn\", \"info\", \"debug\", \"trace\", or a filter like \"info,acpd=debug\""
            .to_owned()
    }

    fn schema() -> Schema {
        text(&format!("^({})$|[=,:]", LogLevel::LEVELS.join("|")))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
        let text = string(value, &Self::describe())?;
        if log::filter(text).is_some() {
            return Ok(text.to_owned());
        }
        Err(Fault {
            hint: did_you_mean(text, LogLevel::LEVELS),
            ..Fault::new(value, format!("must be {}", Self::describe()))
        })
    }

    fn show(value: &String) -> String {
        quoted(value)
    }
}

/// A program, alone or with its arguments.
pub(crate) struct Command;

impl Kind for Command {
    type Value = Vec<String>;

    fn describe() -> String {
        "a program, or a list of a program and its arguments".to_owned()
    }

    fn schema() -> Schema {
        json!({"anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "array",
                "items": [{"type": "string", "minLength": 1, "pattern": WITHOUT_NUL}],
                "additionalItems": text(WITHOUT_NUL),
                "minItems": 1
            }
        ]})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        let command = match value.get_ref() {
            DeValue::String(program) => vec![program.to_string()],
            _ => list(value, &Self::describe(), argument)?,
        };
        match command.first() {
            Some(program) if !program.is_empty() => Ok(command),
            _ => Err(Fault::new(value, "names no program")),
        }
    }

    fn show(value: &Vec<String>) -> String {
        match value.as_slice() {
            [] => String::new(),
            [program] => quoted(program),
            _ => Arguments::show(value),
        }
    }
}

/// A program with its arguments, or a line for a shell.
pub(crate) struct CommandLine;

/// How a line for a shell is run.
const SHELL: [&str; 2] = ["sh", "-c"];

impl Kind for CommandLine {
    type Value = Vec<String>;

    fn describe() -> String {
        "a line for `sh`, or a list of a program and its arguments".to_owned()
    }

    fn schema() -> Schema {
        Command::schema()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        let command = Command::read(value).map_err(|fault| match value.get_ref() {
            DeValue::String(_) | DeValue::Array(_) => fault,
            _ => Fault::wrong_type(value, &Self::describe()),
        })?;
        match (value.get_ref(), command.as_slice()) {
            (DeValue::String(_), [line]) if line.contains('\0') => {
                Err(Fault::new(value, "cannot hold a NUL character"))
            }
            (DeValue::String(_), [line]) => {
                Ok(SHELL.into_iter().chain([line.as_str()]).map(str::to_owned).collect())
            }
            _ => Ok(command),
        }
    }

    fn show(value: &Vec<String>) -> String {
        match value.as_slice() {
            [] => String::new(),
            _ => Arguments::show(value),
        }
    }
}

/// A list of strings.
pub(crate) struct Arguments;

fn argument(value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
    let text = string(value, "a list of strings")?;
    if text.contains('\0') {
        return Err(Fault::new(value, "cannot hold a NUL character"));
    }
    Ok(text.to_owned())
}

impl Kind for Arguments {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of strings".to_owned()
    }

    fn schema() -> Schema {
        list_of(&text(WITHOUT_NUL))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), argument)
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }
}

/// An absolute directory, or one in the home directory, which is also what `None` stands for.
pub(crate) struct Directory;

impl Kind for Directory {
    type Value = Option<PathBuf>;

    fn describe() -> String {
        "an absolute path, or one that begins with \"~/\"".to_owned()
    }

    fn schema() -> Schema {
        text("^(~$|~/|/)")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Fault> {
        let text = string(value, &Self::describe())?;
        if text == "~" {
            return Ok(None);
        }
        let path = match text.strip_prefix("~/") {
            // Without a home directory (a container with a bare user id), agents get this one, too.
            Some(rest) => std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(rest),
            None => PathBuf::from(text),
        };
        if path.is_absolute() {
            Ok(Some(path))
        } else {
            let reason = format!("must be {}", Self::describe());
            Err(Fault::new(value, reason))
        }
    }

    fn show(value: &Option<PathBuf>) -> String {
        let path = value.as_ref().map(|path| path.to_string_lossy());
        quoted(path.as_deref().unwrap_or("~"))
    }
}
