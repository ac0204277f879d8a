//! Layers of the configuration: each table of the file lies over more general tables.
//!
//! ```text
//!  defaults.toml ─▶ catalogue.toml ─▶ [defaults] ─▶ [agents.NAME]        an agent
//!  defaults.toml ─▶ [daemon], [budget], [tui], [policy], [mcp.NAME], [hosts.NAME], [[workspace]]   the other tables
//! ```
//!
//! The innermost value of a key counts, except for keys whose tables add up.

use std::collections::BTreeSet;

use acpd_api::ConfigPlace;
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::document::Value;
use crate::config::error::position;
use crate::config::profile::ADDED_KEYS;

pub(super) struct Layers<'i> {
    pub(super) defaults: DeTable<'i>,
    pub(super) catalogue: DeTable<'i>,
    pub(super) file: DeTable<'i>,
}

pub(super) struct Layer<'a, 'i> {
    table: &'a DeTable<'i>,
    /// Without the line of a value.
    place: ConfigPlace,
}

impl<'i> Layers<'i> {
    pub(super) fn new(file: DeTable<'i>) -> Self {
        let built_in = |text| DeTable::parse_recoverable(text).0.into_inner();
        Self {
            defaults: built_in(include_str!("../../defaults.toml")),
            catalogue: built_in(include_str!("../../catalogue.toml")),
            file,
        }
    }

    pub(super) fn table(&self, header: &str) -> Option<&DeTable<'i>> {
        get(&self.file, header)?.get_ref().as_table()
    }

    pub(super) fn workspaces(&self) -> &[Value<'i>] {
        let list = self.file.get("workspace").and_then(|list| list.get_ref().as_array());
        list.map_or(&[], |list| list)
    }

    /// Returns the layers of a table, the innermost last. `header` is like `daemon`, `agents.NAME`
    /// or `workspace.0`.
    pub(super) fn of(&self, header: &str) -> Vec<Layer<'_, 'i>> {
        let (kind, name) = header.split_once('.').unwrap_or((header, ""));
        let in_file = |table: &str| ConfigPlace::File { line: 0, table: Some(table.into()) };
        let mut layers = vec![(self.defaults.get(kind), ConfigPlace::Default)];
        if kind == "agents" {
            layers.push((self.catalogue.get(name), ConfigPlace::Catalogue));
            layers.push((self.file.get("defaults"), in_file("defaults")));
        }
        let place = in_file(if kind == "workspace" { kind } else { header });
        layers.push((get(&self.file, header), place));
        let tables = layers.into_iter().filter_map(|(value, place)| {
            Some(Layer { table: value?.get_ref().as_table()?, place })
        });
        tables.collect()
    }

    /// Returns the whole document, with all tables merged.
    pub(super) fn merged(&self) -> DeTable<'i> {
        let merged = |header: &str| table(merged(&self.of(header)));
        let mut document = self.file.clone();
        for name in ["daemon", "budget", "tui", "policy"] {
            set(&mut document, name, merged(name));
        }
        for kind in ["agents", "mcp", "hosts"] {
            let known = self.catalogue.keys().filter(|_| kind == "agents");
            let own = self.table(kind).into_iter().flat_map(DeTable::keys);
            let names: BTreeSet<&str> = known.chain(own).map(|name| &**name.get_ref()).collect();
            let mut tables = DeTable::new();
            for name in names {
                set(&mut tables, name, merged(&format!("{kind}.{name}")));
            }
            set(&mut document, kind, table(tables));
        }
        let workspaces = 0..self.workspaces().len();
        let list = workspaces.map(|at| merged(&format!("workspace.{at}"))).collect();
        set(&mut document, "workspace", Spanned::new(0..0, DeValue::Array(list)));
        document
    }
}

impl<'i> Layer<'_, 'i> {
    pub(super) fn get(&self, key: &str) -> Option<&Value<'i>> {
        get(self.table, key)
    }

    pub(super) fn place(&self, text: &str, value: &Value<'_>) -> ConfigPlace {
        match self.place.clone() {
            ConfigPlace::File { table, .. } => {
                ConfigPlace::File { line: position(text, value.span().start).0, table }
            }
            built_in => built_in,
        }
    }
}

/// Returns the value of a dotted key, in which items of a list are numbers.
pub(super) fn get<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a Value<'i>> {
    let mut names = key.split('.');
    let first = table.get(names.next()?)?;
    names.try_fold(first, |value, name| match value.get_ref() {
        DeValue::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.as_table()?.get(name),
    })
}

pub(super) fn json(value: &Value<'_>) -> Json {
    Json::deserialize(value.clone().into_deserializer()).unwrap_or_default()
}

fn table(table: DeTable<'_>) -> Value<'_> {
    Spanned::new(0..0, DeValue::Table(table))
}

fn set<'i>(table: &mut DeTable<'i>, name: &str, value: Value<'i>) {
    table.insert(Spanned::new(0..0, name.to_owned().into()), value);
}

/// Merges layers. A command is not merged, but replaced.
pub(super) fn merged<'i>(layers: &[Layer<'_, 'i>]) -> DeTable<'i> {
    let mut table = DeTable::new();
    for layer in layers {
        if let Some(command) = layer.get("command") {
            table.remove("builtin");
            // A list is the whole command; a string keeps the arguments, so that a known agent
            // needs only a path.
            if command.get_ref().is_array() {
                table.remove("args");
            }
        }
        let starts_nothing = layer.get("tcp.connect").is_some();
        if starts_nothing && matches!(layer.place, ConfigPlace::File { .. }) {
            for key in ["command", "args", "builtin"] {
                table.remove(key);
            }
        }
        lay(&mut table, layer.table);
    }
    let arguments = table.remove("args");
    if let Some(command) = table.get_mut("command") {
        let words = |value: Value<'i>| match value.into_inner() {
            DeValue::Array(words) => words.into_iter().collect(),
            word => vec![Spanned::new(0..0, word)],
        };
        let arguments = arguments.into_iter().flat_map(words);
        let command = command.get_mut();
        let program = Spanned::new(0..0, command.clone());
        *command = DeValue::Array(words(program).into_iter().chain(arguments).collect());
    }
    table
}

fn lay<'i>(outer: &mut DeTable<'i>, inner: &DeTable<'i>) {
    // Fifty defaults for each agent of the catalogue, whenever a daemon starts: a copy needs no comparisons.
    if outer.is_empty() {
        outer.clone_from(inner);
        return;
    }
    for (name, value) in inner {
        let Some(slot) = outer.get_mut(name) else {
            outer.insert(name.clone(), value.clone());
            continue;
        };
        match (slot.get_mut(), value.get_ref()) {
            (DeValue::Table(outer), DeValue::Table(inner)) => lay(outer, inner),
            (DeValue::Array(outer), DeValue::Array(inner))
                if ADDED_KEYS.contains(&&**name.get_ref()) =>
            {
                let has = |outer: &[Value<'i>], item: &Value<'i>| {
                    outer.iter().any(|known| known.get_ref().as_str() == item.get_ref().as_str())
                };
                for item in inner {
                    if !has(outer, item) {
                        outer.push(item.clone());
                    }
                }
            }
            (slot, inner) => *slot = inner.clone(),
        }
    }
}
