//! Reads TOML with serde, and reports every mistake.
//!
//! serde stops at its first mistake. The entry at the span of the error is reported and removed,
//! and the rest is read again:
//!
//! ```text
//!  document ─▶ serde ─▶ read
//!     ▲          └─ refused: a mistake
//!     └─ without ────────────┘
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Error};

use crate::config::error::{ConfigError, SourceText, did_you_mean};
use crate::config::format::{fields, listed, one_of};
use crate::config::profile::{AGENT_KEYS, CATALOGUE_KEYS, Profile};
use crate::config::redacted::SECRET_TABLES;
use crate::config::sections::sections;

pub(super) type Name<'i> = Spanned<DeString<'i>>;
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// Longest text that a message quotes, in bytes.
const LONGEST_QUOTE: usize = 100;
/// Maximum number of mistakes: each one costs another reading.
const MOST: usize = 250;

/// Removed keys, and what to do instead. A `*` stands for any name.
const REMOVED: [(&str, &str); 3] = [
    ("daemon.host", "delete it: each agent has a shim"),
    ("tui.keys", "delete it: the keys of the screens are fixed, and `?` or `^G` shows them"),
    (
        "agents.*.credentials.*.keyring",
        "let a command read the keyring: `command = [\"secret-tool\", \"lookup\", \"service\", \"NAME\"]`, \
         on macOS `command = [\"security\", \"find-generic-password\", \"-w\", \"-s\", \"NAME\"]`",
    ),
];

pub(super) fn parse<'t>(text: &SourceText<'t>) -> Result<DeTable<'t>, ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text.content);
    for error in errors {
        let span = error.span().unwrap_or_default();
        // Only the message: the full error quotes the line, which may hold a secret.
        text.mistake(&span, format!("not valid TOML: {}", error.message()), None);
    }
    text.checked(document.into_inner())
}

/// Returns the entries in the order of the file.
pub(super) fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

pub(super) fn read<'i, T: Deserialize<'i>>(table: DeTable<'i>) -> Result<T, Error> {
    T::deserialize(Spanned::new(0..0, DeValue::Table(table)).into_deserializer())
}

/// Returns the document without the parts that are wrong for a `T`. Adds the headers of tables with
/// mistakes to `flawed`: the rest of such a table need not fit together.
pub(super) fn sift<'i, T: Deserialize<'i>>(
    text: &SourceText<'_>,
    document: DeTable<'i>,
    flawed: &mut BTreeSet<String>,
) -> DeTable<'i> {
    let mut document = Spanned::new(0..0, DeValue::Table(document));
    // Tables and lists that lack something after a removal, which is no mistake of the file.
    let mut damaged: Vec<Range<usize>> = Vec::new();
    for _ in 0..MOST {
        let Err(error) = T::deserialize(document.clone().into_deserializer()) else {
            let DeValue::Table(table) = document.into_inner() else { break };
            return table;
        };
        let Some(taken) = take(&mut document, &error) else {
            text.mistake(&(0..0), error.message().to_owned(), None);
            break;
        };
        if !damaged.contains(&error.span().unwrap_or_default()) {
            flawed.extend(split(&taken.path).1);
            taken.report(text, &error);
        }
        damaged.extend(taken.outer);
    }
    DeTable::new()
}

struct Taken<'i> {
    path: Vec<String>,
    /// Spans of the tables and lists around it.
    outer: Vec<Range<usize>>,
    /// `None` for an item of a list.
    name: Option<Name<'i>>,
    value: Value<'i>,
}

/// Removes the innermost entry or item whose name or value has the error.
fn take<'i>(value: &mut Value<'i>, error: &Error) -> Option<Taken<'i>> {
    let span = value.span();
    let is_list = error.message().starts_with("invalid type: sequence");
    // The first table of a list of tables has the span of the list.
    let is_meant = |value: &Value<'i>| {
        error.span() == Some(value.span()) && (value.get_ref().is_array() || !is_list)
    };
    let new = |name, value| Taken { path: Vec::new(), outer: Vec::new(), name, value };
    let mut taken = match value.get_mut() {
        DeValue::Table(table) => {
            let inner = |(name, item): (&Name<'i>, &mut Value<'i>)| {
                Some((name.clone(), take(item, error)?))
            };
            let inner = table.iter_mut().find_map(inner);
            let (name, mut taken) = inner.or_else(|| {
                let is_named = |name: &Name<'i>| error.span() == Some(name.span());
                let (name, _) =
                    table.iter().find(|(name, item)| is_named(name) || is_meant(item))?;
                let (name, item) = table.remove_entry(&name.clone())?;
                Some((name.clone(), new(Some(name), item)))
            })?;
            taken.path.insert(0, name.get_ref().to_string());
            taken
        }
        DeValue::Array(items) => {
            items.iter_mut().find_map(|item| take(item, error)).or_else(|| {
                let at = items.iter().position(is_meant)?;
                let mut all: Vec<_> =
                    std::mem::replace(items, DeArray::new()).into_iter().collect();
                let item = all.remove(at);
                *items = all.into_iter().collect();
                Some(new(None, item))
            })?
        }
        _ => return None,
    };
    taken.outer.push(span);
    Some(taken)
}

impl Taken<'_> {
    fn report(&self, text: &SourceText<'_>, error: &Error) {
        let (place, message) = (shown(&self.path), error.message());
        // A table that is written through its entries only has the span of its name.
        let is_named = |name: &&Name<'_>| {
            error.span() == Some(name.span()) && !message.starts_with("invalid type: map")
        };
        let Some(name) = self.name.as_ref().filter(is_named) else {
            let (reason, hint) = self.reason(message);
            let item = if self.name.is_none() { "an item of " } else { "" };
            return text.mistake(&self.value.span(), format!("{item}{place} {reason}"), hint);
        };
        let removed = REMOVED.iter().find(|(key, _)| is(&self.path, key));
        let (message, hint) = if let Some((_, instead)) = removed {
            (format!("{place} was removed"), Some((*instead).to_owned()))
        } else if message.starts_with("unknown field") {
            (format!("unknown key {place}"), suggestion(&self.path, &listed(message)))
        } else {
            let (_, wanted) = message.rsplit_once(", expected ").unwrap_or_default();
            let outer = shown(&self.path[..self.path.len() - 1]);
            (format!("{outer} has an entry {:?}, which is not {wanted}", name.get_ref()), None)
        };
        text.mistake(&name.span(), message, hint);
    }

    /// Returns what is wrong with the value, and a hint. serde writes `invalid type: FOUND,
    /// expected WANTED`; formats add text after that, or write their own.
    fn reason(&self, error: &str) -> (String, Option<String>) {
        let (error, hint) = error.split_once('\n').unwrap_or((error, ""));
        let (problem, wanted) = error.rsplit_once(", expected ").unwrap_or((error, ""));
        let value = self.value.get_ref();
        let wanted = match wanted {
            "a boolean" => "true or false".to_owned(),
            "a list of tables" | "a sequence" => {
                format!("a list of tables: `[[{}]]`", self.path.join("."))
            }
            record if record.starts_with("struct ") => "a table".to_owned(),
            _ if problem.starts_with("unknown variant") => one_of(&listed(error)),
            other => other.to_owned(),
        };
        let (kind, quoted) = found(value);
        // An address may contain a password.
        let may_be_secret = |name: &str| name == "url" || SECRET_TABLES.contains(&name);
        let is_secret = self.path.iter().any(|name| may_be_secret(name));
        let mut hint = Some(hint).filter(|hint| !hint.is_empty()).map(str::to_owned);
        let reason = if problem.starts_with("invalid type") {
            if wanted == "a string" && !value.is_array() && !value.is_table() {
                hint = Some("put it in quotes".to_owned());
            }
            format!("must be {wanted}, not {kind}")
        } else if value.is_datetime() {
            // serde sees a date as a table.
            "must be a table, not a date".to_owned()
        } else if let Some(field) = problem.strip_prefix("missing field ") {
            format!("has no {field}")
        } else if problem.starts_with("wanted ") {
            format!("must be a string, not {kind}")
        } else if !problem.starts_with("invalid value") && !problem.starts_with("unknown variant") {
            error.to_owned()
        } else if is_secret || quoted.len() > LONGEST_QUOTE {
            format!("must be {wanted}")
        } else {
            let words = Some(&wanted).filter(|wanted| wanted.starts_with('"'));
            let words = words.into_iter().flat_map(|words| words.split('"').skip(1).step_by(2));
            hint = hint.or_else(|| did_you_mean(value.as_str()?, words));
            format!("must be {wanted}, not {quoted}")
        };
        (reason, hint)
    }
}

/// Returns the type of a value, and the value as a message quotes it.
fn found(value: &DeValue<'_>) -> (&'static str, String) {
    match value {
        DeValue::String(text) => ("a string", format!("{text:?}")),
        DeValue::Integer(number) => ("a whole number", number.to_string()),
        DeValue::Float(number) => ("a fraction", number.to_string()),
        DeValue::Boolean(flag) => ("a boolean", flag.to_string()),
        DeValue::Datetime(date) => ("a date", date.to_string()),
        DeValue::Array(_) => ("a list", "this list".to_owned()),
        DeValue::Table(_) => ("a table", "this table".to_owned()),
    }
}

/// Returns a similar name, or the table to which a key belongs, or the keys of a reference.
fn suggestion(path: &[String], known: &[String]) -> Option<String> {
    let (unknown, table) = split(path);
    if table.is_none() {
        if let Some((name, _)) = sections().iter().find(|(_, keys)| keys.contains(&unknown)) {
            return Some(format!("`{unknown}` belongs in `[{name}]`"));
        }
        if fields::<Profile>().contains(&unknown) {
            return Some(format!("`{unknown}` belongs in `[defaults]` or `[agents.NAME]`"));
        }
    }
    let prefix = unknown.rsplit_once('.').map_or("", |(outer, _)| &unknown[..=outer.len()]);
    let fits = |key: &&String| !table.as_ref().is_some_and(|table| is_misplaced(table, key));
    let full: Vec<String> = known.iter().filter(fits).map(|key| format!("{prefix}{key}")).collect();
    if prefix.matches('.').count() > 1 {
        return Some(format!("the keys are `{}`", known.join("`, `")));
    }
    did_you_mean(&unknown, full.iter().map(String::as_str))
}

pub(super) fn is_misplaced(table: &str, key: &str) -> bool {
    let is_agent = table.starts_with("agents.");
    (table == "defaults" && AGENT_KEYS.contains(&key))
        || ((is_agent || table == "defaults") && CATALOGUE_KEYS.contains(&key))
}

/// Returns whether the path is `key`, in which a `*` stands for any name.
fn is(path: &[String], key: &str) -> bool {
    let fits = |(name, wanted): (&String, &str)| wanted == "*" || name == wanted;
    key.split('.').count() == path.len() && path.iter().zip(key.split('.')).all(fits)
}

/// Returns the dotted key, and the header of its table if it has one.
fn split(path: &[String]) -> (String, Option<String>) {
    let (tables, is_list) = match path.first().map_or("", String::as_str) {
        "agents" | "mcp" | "hosts" => (2, false),
        "policy" if path.get(1).is_some_and(|name| name == "rules") => (2, true),
        "workspace" => (1, true),
        _ => (1, false),
    };
    if path.len() <= tables {
        return (path.join("."), None);
    }
    let header = path[..tables].join(".");
    (path[tables..].join("."), Some(if is_list { format!("[{header}]") } else { header }))
}

/// Returns the key with its table, as a message names it.
fn shown(path: &[String]) -> String {
    let (key, table) = split(path);
    let table = table.map_or_else(String::new, |table| format!(" in `[{table}]`"));
    format!("`{key}`{table}")
}
