//! The state of a session next to its conversation, for the head of a screen.

use std::collections::BTreeSet;

use acpd_api::{Amount, Cost, TurnState, Untrusted, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::block::PlanEntry;
use crate::lenient::{self, list_in};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    pub title: Option<Untrusted>,
    /// A mode's id.
    pub mode: Option<Untrusted>,
    /// Not in the journal.
    pub modes: Vec<Mode>,
    pub options: Vec<ConfigOption>,
    pub commands: Vec<Command>,
    /// Without a size if it is not known.
    pub usage: Option<Usage>,
    pub plan: Vec<PlanEntry>,
    /// The number of the newest turn.
    pub turn: Option<u64>,
    /// According to the journal.
    pub working: bool,
    /// The state that the daemon sends to attached clients; none until then.
    pub live_turn: Option<TurnState>,
    /// Fields with a value in the lines that were read.
    pub(crate) known: BTreeSet<Field>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    Title,
    Mode,
    Options,
    Commands,
    Usage,
    Plan,
    Turn,
    Working,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Mode {
    pub id: Untrusted,
    pub name: Option<Untrusted>,
    pub description: Option<Untrusted>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Command {
    pub name: Untrusted,
    #[serde(default)]
    pub description: Untrusted,
    pub input: Option<CommandInput>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CommandInput {
    /// Shown until the user types.
    pub hint: Untrusted,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOption {
    pub id: Untrusted,
    pub name: Option<Untrusted>,
    pub description: Option<Untrusted>,
    /// `mode`, `model`, `thought_level` or an unknown value.
    pub category: Option<Untrusted>,
    /// A string; a boolean for an option of that type.
    pub current_value: Value,
    /// Values or groups of values; empty for a boolean.
    #[serde(default, deserialize_with = "list_in")]
    options: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Entry {
    Value(Choice),
    Group { options: Vec<Choice> },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Choice {
    pub value: Untrusted,
    pub name: Option<Untrusted>,
}

/// Reads an update of the usage; missing and unreadable values keep the previous one. Returns none
/// if nothing was read.
pub(crate) fn usage(update: &Map<String, Value>, before: Option<&Usage>) -> Option<Usage> {
    let count = |name: &str| update.get(name).and_then(Value::as_u64);
    let cost = update.get("cost").and_then(|cost| {
        let amount = Amount::from_units(cost.get("amount")?.as_f64()?)?;
        let currency = cost.get("currency").and_then(Value::as_str).unwrap_or_default();
        Some(Cost { amount, currency: currency.into() })
    });
    let used = count("used");
    if used.is_none() && cost.is_none() {
        return None;
    }
    Some(Usage {
        used: used.or(before.and_then(|before| before.used)).or(Some(0)),
        // 0 is a size that the agent does not report.
        size: count("size").filter(|size| *size > 0),
        // An update without a cost keeps the last one.
        cost: cost.or_else(|| before?.cost.clone()),
    })
}

impl ConfigOption {
    /// Reads `configOptions`; unreadable items are skipped.
    pub fn list(options: &Value) -> Vec<ConfigOption> {
        lenient::list(Some(options))
    }

    pub(crate) fn of_category<'a>(options: &'a [Self], category: &str) -> Option<&'a Self> {
        let is_it = |option: &&Self| option.category.as_ref().is_some_and(|it| *it == category);
        options.iter().find(is_it)
    }

    pub fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.options.iter().flat_map(|entry| match entry {
            Entry::Value(choice) => std::slice::from_ref(choice),
            Entry::Group { options } => options.as_slice(),
        })
    }

    /// Returns the current value for `session/set_config_option`.
    pub fn value(&self) -> Untrusted {
        match &self.current_value {
            Value::String(value) => value.into(),
            other => Untrusted::of(other),
        }
    }

    pub fn value_name(&self) -> Untrusted {
        if let Value::Bool(on) = self.current_value {
            return if on { "on" } else { "off" }.into();
        }
        let value = self.value();
        let chosen = self.choices().find(|choice| choice.value == value);
        chosen.and_then(|choice| choice.name.clone()).unwrap_or(value)
    }
}

impl Header {
    pub(crate) fn knows(&mut self, field: Field) {
        self.known.insert(field);
    }

    /// Adds values of older lines where later lines had none.
    pub(crate) fn take_older(&mut self, older: Header) {
        for field in older.known.difference(&self.known.clone()) {
            match field {
                Field::Title => self.title.clone_from(&older.title),
                Field::Mode => self.mode.clone_from(&older.mode),
                Field::Options => self.options.clone_from(&older.options),
                Field::Commands => self.commands.clone_from(&older.commands),
                Field::Usage => self.usage.clone_from(&older.usage),
                Field::Plan => self.plan.clone_from(&older.plan),
                Field::Turn => self.turn = older.turn,
                Field::Working => self.working = older.working,
            }
        }
        if let (Some(usage), Some(before)) = (&mut self.usage, older.usage) {
            usage.cost = usage.cost.take().or(before.cost);
        }
        self.known.extend(older.known);
    }

    pub fn mode_name<'a>(&'a self, id: &'a Untrusted) -> &'a Untrusted {
        let mode = self.modes.iter().find(|mode| mode.id == *id);
        mode.and_then(|mode| mode.name.as_ref()).unwrap_or(id)
    }

    pub fn option(&self, category: &str) -> Option<&ConfigOption> {
        ConfigOption::of_category(&self.options, category)
    }
}
