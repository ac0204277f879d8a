//! What the configuration comes to, key by key, and who says so.
//!
//! The reader takes values over and forgets where they stood. So whoever asks has the file looked through once more, for
//! the places alone:
//!
//! ```text
//!  a key's name ─▶ catalogue ─▶ [defaults] ─▶ [agents.NAME]   the innermost that has it, or all where they add up
//!  the value that was read ─▶ as it would be written ─▶ without what may be a secret
//! ```

use std::iter::once;
use std::path::Path;

use acpd_api::redact::HIDDEN;
use acpd_api::{ConfigPlace, ConfigValue, ConfigValues, redact};
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::error::{ConfigError, line_of};
use crate::config::keys::{Key, Keys, Scope};
use crate::config::resolved::Config;
use crate::config::tables::profile::Root;
use crate::config::{catalogue, parse, text_of};

/// Tables in which every value may be a secret.
const HIDDEN_TABLES: [&str; 2] = ["env", "headers"];
/// What a session begins with in a directory, beside its agent.
const BEGUN_WITH: [&str; 3] = ["model", "mode", "diagnostics"];

/// What the file at `path` comes to, and what counts in the directory `dir`. `found` returns the default agent if the
/// file says none.
///
/// # Errors
/// As [`load`](crate::config::load).
pub fn values(
    path: &Path,
    dir: &Path,
    found: impl FnOnce(&Config) -> String,
) -> Result<ConfigValues, ConfigError> {
    let text = text_of(path)?;
    let mut config = parse(path, &text)?;
    if config.default_is_found {
        config.default_agent = found(&config);
    }
    let file = File { text: &text, document: DeTable::parse_recoverable(&text).0.into_inner() };
    let known = DeTable::parse_recoverable(catalogue::TEXT).0.into_inner();
    Ok(ConfigValues {
        file: path.display().to_string().into(),
        exists: path.exists(),
        agents: shown_agents(&file, &config).into_iter().map(Into::into).collect(),
        values: all(&file, &known, &config),
        dir: dir.display().to_string().into(),
        here: here(&file, &known, &config, dir),
    })
}

/// The agents with a table of their own, and the default one.
fn shown_agents(file: &File<'_>, config: &Config) -> Vec<String> {
    let has_table = |name: &&String| file.table(&["agents", name]).is_some();
    let is_shown = |name: &&String| **name == config.default_agent || has_table(name);
    config.agents.keys().filter(is_shown).cloned().collect()
}

fn all(file: &File<'_>, known: &DeTable<'_>, config: &Config) -> Vec<ConfigValue> {
    let mut values = vec![default_agent(file, config)];
    values.extend(file.single("daemon", &config.daemon));
    values.extend(file.single("hooks", &config.hooks));
    values.extend(file.single("budget", &config.budget));
    values.extend(file.single("retention", &config.retention));
    values.extend(file.single("tui", &config.tui));
    for (name, profile) in &config.agents {
        values.extend(rows(&format!("agents.{name}"), profile, &file.of_agent(known, name)));
    }
    for (at, workspace) in config.workspaces.iter().enumerate() {
        let place = file.workspace(at);
        values.extend(rows(&format!("workspace.{at}"), workspace, place.as_slice()));
    }
    for (name, server) in &config.mcp {
        let place = file.layer(&["mcp", name]);
        values.extend(rows(&format!("mcp.{name}"), server, place.as_slice()));
    }
    values.extend(policy(file, config));
    values
}

/// The agent of clients that name none: the file may say it by its first table of an agent.
fn default_agent(file: &File<'_>, config: &Config) -> ConfigValue {
    let value = json!(config.default_agent);
    let key = Root::keys().first().map_or("", |key| key.name);
    let said = file.document.get(key).map(|value| file.place(None, value));
    let first = || {
        let table = ["agents", &config.default_agent];
        file.entry(&table).map(|value| file.place(Some(&table.join(".")), value))
    };
    let from = said.or_else(first).unwrap_or(ConfigPlace::Default);
    ConfigValue { key: key.into(), value, from: vec![from] }
}

/// The rules: each is told whole.
fn policy(file: &File<'_>, config: &Config) -> Vec<ConfigValue> {
    let rules: Vec<Value> = file.entry(&["policy", "rules"]).map_or_else(Vec::new, |rules| {
        rules.get_ref().as_array().into_iter().flatten().map(|rule| cleaned(plain(rule))).collect()
    });
    let row = |name: &str, value: Value| {
        let said = file.entry(&["policy", name]);
        let from = said.map_or(ConfigPlace::Default, |at| file.place(Some("policy"), at));
        ConfigValue { key: format!("policy.{name}").into(), value, from: vec![from] }
    };
    vec![row("default", json!(config.policy.default)), row("rules", Value::Array(rules))]
}

/// What counts in a directory: the innermost `[[workspace]]` that says it, else what counts everywhere.
fn here(file: &File<'_>, known: &DeTable<'_>, config: &Config, dir: &Path) -> Vec<ConfigValue> {
    let inside = config.workspaces_of(dir);
    let said = |name: &str, agent: Option<&str>| {
        inside.iter().find_map(|(at, workspace)| {
            let named = workspace.agent.as_deref();
            let counts = agent.is_none_or(|agent| named.is_none_or(|named| named == agent));
            let place = file.workspace(*at).filter(|_| counts)?;
            place.get(name)?;
            let key = rows("", *workspace, &[place]);
            key.into_iter().find(|value| value.key.raw() == name)
        })
    };
    let agent = said("agent", None)
        .unwrap_or_else(|| ConfigValue { key: "agent".into(), ..default_agent(file, config) });
    let name = agent.value.as_str().unwrap_or_default().to_owned();
    let profile = config.agents.get(&name);
    let of_agent = |key: &str| {
        let rows = rows("", profile?, &file.of_agent(known, &name));
        rows.into_iter().find(|value| value.key.raw() == key)
    };
    let unset = |key: &str| ConfigValue {
        key: key.into(),
        value: Value::Null,
        from: vec![ConfigPlace::Default],
    };
    let begun_with = BEGUN_WITH.map(|key| {
        // Those are for people of any agent.
        let agent = (key != "diagnostics").then_some(name.as_str());
        said(key, agent).or_else(|| of_agent(key)).unwrap_or_else(|| unset(key))
    });
    once(agent).chain(begun_with).collect()
}

/// The file, which was read without a mistake.
struct File<'t> {
    text: &'t str,
    document: DeTable<'t>,
}

impl<'t> File<'t> {
    fn entry(&self, path: &[&str]) -> Option<&Spanned<DeValue<'t>>> {
        let (last, tables) = path.split_last()?;
        let table = tables
            .iter()
            .try_fold(&self.document, |table, name| table.get(*name)?.get_ref().as_table())?;
        table.get(*last)
    }

    fn table(&self, path: &[&str]) -> Option<&DeTable<'t>> {
        self.entry(path)?.get_ref().as_table()
    }

    fn layer(&self, path: &[&str]) -> Option<Layer<'_, 't>> {
        Some(Layer { table: self.table(path)?, file: Some((self, path.join("."))) })
    }

    /// A `[[workspace]]`, counted from 0.
    fn workspace(&self, at: usize) -> Option<Layer<'_, 't>> {
        let table = self.document.get("workspace")?.get_ref().as_array()?.get(at)?;
        let file = Some((self, "workspace".to_owned()));
        Some(Layer { table: table.get_ref().as_table()?, file })
    }

    /// What says something about an agent, the innermost last.
    fn of_agent<'a>(&'a self, known: &'a DeTable<'t>, name: &str) -> Vec<Layer<'a, 't>> {
        let known = known.get(name).and_then(|known| known.get_ref().as_table());
        let known = known.map(|table| Layer { table, file: None });
        let own = [self.layer(&["defaults"]), self.layer(&["agents", name])];
        once(known).chain(own).flatten().collect()
    }

    /// The rows of a table that stands in one place only.
    fn single<T: Keys>(&self, name: &str, value: &T) -> Vec<ConfigValue> {
        rows(name, value, self.layer(&[name]).as_slice())
    }

    fn place(&self, table: Option<&str>, value: &Spanned<DeValue<'_>>) -> ConfigPlace {
        ConfigPlace::File {
            line: line_of(self.text, value.span().start),
            table: table.map(Into::into),
        }
    }
}

/// A table that says something, in the file or in the catalogue.
struct Layer<'a, 't> {
    table: &'a DeTable<'t>,
    file: Option<(&'a File<'t>, String)>,
}

impl<'t> Layer<'_, 't> {
    /// What it says for a key of this dotted name.
    fn get(&self, key: &str) -> Option<&Spanned<DeValue<'t>>> {
        let mut names = key.split('.');
        let first = self.table.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get_ref().as_table()?.get(name))
    }

    fn place(&self, value: &Spanned<DeValue<'_>>) -> ConfigPlace {
        match &self.file {
            Some((file, table)) => file.place(Some(table), value),
            None => ConfigPlace::Catalogue,
        }
    }
}

/// A row for each key that a person may write.
fn rows<T: Keys>(table: &str, value: &T, layers: &[Layer<'_, '_>]) -> Vec<ConfigValue> {
    let keys = T::keys();
    // Once all is read, arguments are part of the command.
    let keys = keys.iter().filter(|key| key.scope < Scope::Catalogue && key.name != "args");
    keys.map(|key| row(table, key, value, layers)).collect()
}

fn row<T>(table: &str, key: &Key<T>, value: &T, layers: &[Layer<'_, '_>]) -> ConfigValue {
    let mut from: Vec<ConfigPlace> = layers
        .iter()
        .filter_map(|layer| {
            let said = layer.get(key.name);
            let arguments = || layer.get("args").filter(|_| key.name == "command");
            Some(layer.place(said.or_else(arguments)?))
        })
        .collect();
    if !key.adds_up {
        from.drain(..from.len().saturating_sub(1));
    }
    if from.is_empty() {
        from.push(ConfigPlace::Default);
    }
    let name = if table.is_empty() { key.name.to_owned() } else { format!("{table}.{}", key.name) };
    ConfigValue { key: name.into(), value: told(key.name, &(key.show)(value)), from }
}

/// A value as it would be written, as JSON and without what may be a secret.
fn told(name: &str, written: &str) -> Value {
    let line = format!("it = {written}");
    let value = line.parse::<toml::Table>().ok().and_then(|mut table| table.remove("it"));
    let value = match value.map_or(Value::Null, |value| json!(value)) {
        // A text keeps the arguments that are known: written as a list it is the whole command.
        Value::String(program) if name == "command" => json!([program]),
        value => value,
    };
    if HIDDEN_TABLES.contains(&name) { hidden(value) } else { cleaned(value) }
}

/// A part of the file as JSON.
fn plain(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => json!(text),
        DeValue::Array(values) => values.iter().map(plain).collect(),
        DeValue::Table(table) => {
            let entries =
                table.iter().map(|(name, value)| (name.get_ref().to_string(), plain(value)));
            Value::Object(entries.collect())
        }
        // Rules have no others.
        DeValue::Boolean(flag) => json!(flag),
        _ => Value::Null,
    }
}

/// The names with what stands for a value; of a reference, all but the text before it.
fn hidden(value: Value) -> Value {
    let entry = |value| match value {
        Value::Object(mut reference) => {
            if let Some(prefix) = reference.get_mut("prefix") {
                *prefix = HIDDEN.into();
            }
            Value::Object(reference)
        }
        _ => HIDDEN.into(),
    };
    let Value::Object(entries) = value else { return value };
    Value::Object(
        entries.into_iter().map(|(name, value)| (name, entry(value))).collect::<Map<_, _>>(),
    )
}

/// Without what looks like a secret. Words of a list are looked at together: `--token` announces one.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => redact::text(&text).into(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            redact::text(&words.join("\0")).split('\0').filter(|_| !words.is_empty()).collect()
        }
        Value::Array(items) => items.into_iter().map(cleaned).collect(),
        Value::Object(entries) => {
            Value::Object(entries.into_iter().map(|(name, value)| (name, cleaned(value))).collect())
        }
        value => value,
    }
}
