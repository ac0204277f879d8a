//! The value of each key, and its origin: `acpctl config show`.
//!
//! ```text
//!  a key of the schema ─▶ the layers of its table ─▶ the innermost that has it, or all where they add up
//!                                                └─▶ the value as it was written, without what may be a secret
//! ```

use std::iter::once;
use std::path::Path;

use acpd_api::redact::HIDDEN;
use acpd_api::{ConfigPlace, ConfigValue, ConfigValues, redact};
use acpd_policy::PolicyConfig;
use serde_json::{Value as Json, json};
use toml::de::DeTable;

use crate::config::error::{ConfigError, position};
use crate::config::format::fields;
use crate::config::layers::{self, Layer, Layers, get};
use crate::config::profile::{ADDED_KEYS, Profile};
use crate::config::redacted::SECRET_TABLES;
use crate::config::resolved::Config;
use crate::config::schema::{keys, with_links};
use crate::config::sections::{Host, Workspace, sections};
use crate::config::servers::McpServer;
use crate::config::{file, text_of};

/// Keys for the sessions of a directory, in addition to its agent.
const SESSION_KEYS: [&str; 3] = ["model", "mode", "diagnostics"];

/// Returns the values of the file at `path`, and those that count in the directory `dir`. `found`
/// returns the default agent if the file names none.
pub fn values(
    path: &Path,
    dir: &Path,
    found: impl FnOnce(&Config) -> String,
) -> Result<ConfigValues, ConfigError> {
    let text = text_of(path)?;
    let (mut config, layers) = file::read(path, &text)?;
    if config.default_is_found {
        config.default_agent = found(&config);
    }
    let shown = Shown { text: &text, layers: &layers, config: &config };
    let is_shown = |name: &&String| {
        **name == config.default_agent || layers.table(&format!("agents.{name}")).is_some()
    };
    Ok(ConfigValues {
        file: path.display().to_string().into(),
        exists: path.exists(),
        agents: config.agents.keys().filter(is_shown).map(|name| name.as_str().into()).collect(),
        values: shown.all(),
        dir: dir.display().to_string().into(),
        here: shown.here(dir),
    })
}

struct Shown<'v> {
    text: &'v str,
    layers: &'v Layers<'v>,
    config: &'v Config,
}

impl Shown<'_> {
    fn all(&self) -> Vec<ConfigValue> {
        let schema = with_links();
        let tables = &schema["properties"];
        let mut values = vec![self.default_agent()];
        let mut add = |header: String, order: &[String], table: &Json| {
            values.extend(self.table(&header, order, table));
        };
        for (name, order) in sections() {
            add(name.to_owned(), &order, &tables[name]);
        }
        let order = fields::<Profile>();
        for name in self.config.agents.keys() {
            add(format!("agents.{name}"), &order, &schema["definitions"]["agent"]);
        }
        let order = fields::<Workspace>();
        for at in 0..self.config.workspaces.len() {
            add(format!("workspace.{at}"), &order, &tables["workspace"]["items"]);
        }
        let order = fields::<McpServer>();
        for name in self.config.mcp.keys() {
            add(format!("mcp.{name}"), &order, &tables["mcp"]["additionalProperties"]);
        }
        let order = fields::<Host>();
        for name in self.config.hosts.keys() {
            add(format!("hosts.{name}"), &order, &tables["hosts"]["additionalProperties"]);
        }
        add("policy".to_owned(), &fields::<PolicyConfig>(), &tables["policy"]);
        values
    }

    /// Returns a row for each key that users may write. Arguments are part of the command.
    fn table(&self, header: &str, order: &[String], table: &Json) -> Vec<ConfigValue> {
        let layers = self.layers.of(header);
        let merged = layers::merged(&layers);
        let keys = keys(order, table).into_iter().filter(|(key, _)| key != "args");
        let row = |(key, _): (String, _)| ConfigValue {
            key: format!("{header}.{key}").into(),
            ..self.row(&key, &layers, &merged)
        };
        keys.map(row).collect()
    }

    fn row(&self, key: &str, layers: &[Layer<'_, '_>], merged: &DeTable<'_>) -> ConfigValue {
        let value = get(merged, key).map_or(Json::Null, layers::json);
        let value = if SECRET_TABLES.contains(&key) { hidden(value) } else { cleaned(value) };
        let place = |layer: &Layer<'_, '_>| {
            let arguments = || layer.get("args").filter(|_| key == "command");
            Some(layer.place(self.text, layer.get(key).or_else(arguments)?))
        };
        let mut from: Vec<ConfigPlace> = layers.iter().filter_map(place).collect();
        if !ADDED_KEYS.contains(&key) {
            from.drain(..from.len().saturating_sub(1));
        }
        from.retain(|place| *place != ConfigPlace::Default);
        if from.is_empty() {
            from.push(ConfigPlace::Default);
        }
        ConfigValue { key: key.into(), value, from }
    }

    fn value(&self, header: &str, key: &str) -> ConfigValue {
        let layers = self.layers.of(header);
        self.row(key, &layers, &layers::merged(&layers))
    }

    /// Returns the agent of clients that name none. The file may name it by its first table of an
    /// agent.
    fn default_agent(&self) -> ConfigValue {
        let header = format!("agents.{}", self.config.default_agent);
        let named = self.layers.file.get("default_agent").map(|value| (value, None));
        let first = || Some((get(&self.layers.file, &header)?, Some(header.as_str().into())));
        let from = named.or_else(first).map_or(ConfigPlace::Default, |(value, table)| {
            ConfigPlace::File { line: position(self.text, value.span().start).0, table }
        });
        let value = json!(self.config.default_agent);
        ConfigValue { key: "default_agent".into(), value, from: vec![from] }
    }

    /// Returns the values for a directory: of the innermost `[[workspace]]` that sets them, else of
    /// the whole file.
    fn here(&self, dir: &Path) -> Vec<ConfigValue> {
        let inside = self.config.workspaces_of(dir);
        let said = |key: &str, agent: Option<&str>| {
            let counts = |workspace: &Workspace| match (&workspace.agent, agent) {
                (Some(named), Some(agent)) => named == agent,
                _ => true,
            };
            let counting = inside.iter().filter(|(_, workspace)| counts(workspace));
            let mut values = counting.map(|(at, _)| self.value(&format!("workspace.{at}"), key));
            values.find(|row| !row.value.is_null())
        };
        let agent = said("agent", None)
            .unwrap_or_else(|| ConfigValue { key: "agent".into(), ..self.default_agent() });
        let name = agent.value.as_str().unwrap_or_default().to_owned();
        let session = SESSION_KEYS.map(|key| {
            // Diagnostics do not depend on the agent.
            let agent = (key != "diagnostics").then_some(name.as_str());
            said(key, agent).unwrap_or_else(|| self.value(&format!("agents.{name}"), key))
        });
        once(agent).chain(session).collect()
    }
}

/// Hides values; of a reference, only the text before it.
fn hidden(value: Json) -> Json {
    let Json::Object(mut entries) = value else { return value };
    for value in entries.values_mut() {
        *value = if value.is_object() { cleaned(value.take()) } else { HIDDEN.into() };
        if let Some(prefix) = value.get_mut("prefix") {
            *prefix = HIDDEN.into();
        }
    }
    Json::Object(entries)
}

/// Hides what looks like a secret. Words of a list are examined together: `--token` announces one.
fn cleaned(value: Json) -> Json {
    match value {
        Json::String(text) => redact::text(&text).into(),
        Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_string) => {
            let words: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            redact::text(&words.join("\0")).split('\0').collect()
        }
        Json::Array(items) => items.into_iter().map(cleaned).collect(),
        Json::Object(entries) => {
            entries.into_iter().map(|(name, value)| (name, cleaned(value))).collect()
        }
        value => value,
    }
}
