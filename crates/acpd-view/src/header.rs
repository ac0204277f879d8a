//! The state of a session next to its conversation, for the head of a screen.

use acpd_api::{Amount, Cost, TurnState, Untrusted, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::block::PlanEntry;
use crate::lenient::{self, list_in};

/// Values are none until a line has them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// A mode's id.
    pub mode: Option<Untrusted>,
    /// Not in the journal.
    pub modes: Vec<Mode>,
    pub options: Option<Vec<ConfigOption>>,
    pub commands: Option<Vec<Command>>,
    /// Without a size if it is not known.
    pub usage: Option<Usage>,
    pub plan: Option<Vec<PlanEntry>>,
    /// According to the journal.
    pub working: Option<bool>,
    /// The state that the daemon sends to attached clients; none until then.
    pub live_turn: Option<TurnState>,
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

/// Reads an update of the usage; missing and unreadable values keep the previous one.
pub(crate) fn read_usage(update: &Map<String, Value>, usage: &mut Option<Usage>) {
    let count = |name: &str| update.get(name).and_then(Value::as_u64);
    let cost = update.get("cost").and_then(|cost| {
        let amount = Amount::from_units(cost.get("amount")?.as_f64()?)?;
        let currency = cost.get("currency").and_then(Value::as_str).unwrap_or_default();
        Some(Cost { amount, currency: currency.into() })
    });
    let used = count("used");
    if used.is_none() && cost.is_none() {
        return;
    }
    let before = usage.take().unwrap_or_default();
    *usage = Some(Usage {
        used: used.or(before.used).or(Some(0)),
        // 0 is a size that the agent does not report.
        size: count("size").filter(|size| *size > 0),
        // An update without a cost keeps the last one.
        cost: cost.or(before.cost),
    });
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
    /// Adds values of older lines where later lines had none.
    pub(crate) fn take_older(&mut self, older: Header) {
        self.mode = self.mode.take().or(older.mode);
        self.options = self.options.take().or(older.options);
        self.commands = self.commands.take().or(older.commands);
        self.plan = self.plan.take().or(older.plan);
        self.working = self.working.or(older.working);
        match (&mut self.usage, older.usage) {
            (Some(usage), Some(before)) => usage.cost = usage.cost.take().or(before.cost),
            (usage, before) => *usage = usage.take().or(before),
        }
    }

    pub fn mode_name<'a>(&'a self, id: &'a Untrusted) -> &'a Untrusted {
        let mode = self.modes.iter().find(|mode| mode.id == *id);
        mode.and_then(|mode| mode.name.as_ref()).unwrap_or(id)
    }

    pub fn option(&self, category: &str) -> Option<&ConfigOption> {
        ConfigOption::of_category(self.options.as_deref().unwrap_or_default(), category)
    }
}
