//! Settings of a session: its modes and options.
//!
//! Reading is lenient: what cannot be read is left out.

use acpd_api::Untrusted;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::text::{Text, text};

/// The settings of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    /// Its modes; none if the agent has none.
    pub(crate) modes: Option<Modes>,
    /// Its options.
    pub(crate) options: Vec<ConfigOption>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Modes {
    /// The id of the one that it is in.
    pub(crate) current_mode_id: Untrusted,
    /// Those to choose from.
    #[serde(default)]
    pub(crate) available_modes: Vec<Mode>,
}

/// A mode.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Mode {
    /// For `session/set_mode`.
    pub(crate) id: Untrusted,
    /// For people.
    pub(crate) name: Option<Untrusted>,
    /// A longer explanation.
    pub(crate) description: Option<Untrusted>,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOption {
    /// For `session/set_config_option`.
    pub(crate) id: Untrusted,
    /// For people.
    pub(crate) name: Option<Untrusted>,
    /// A longer explanation.
    pub(crate) description: Option<Untrusted>,
    /// `mode`, `model`, `thought_level` or another.
    pub(crate) category: Option<Untrusted>,
    /// A string, or a boolean for an option of that type.
    pub(crate) current_value: Value,
    /// The values to choose from, or groups of them; empty for a boolean.
    #[serde(default)]
    options: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Entry {
    Value(Choice),
    Group { options: Vec<Choice> },
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Choice {
    /// The value.
    pub(crate) value: Untrusted,
    /// For people.
    pub(crate) name: Option<Untrusted>,
}

impl Settings {
    /// Reads the result of `session/new` or `session/resume`.
    pub(crate) fn from_raw(result: &RawValue) -> Settings {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Members {
            modes: Value,
            config_options: Value,
        }
        let members: Members = serde_json::from_str(result.get()).unwrap_or_default();
        Settings {
            modes: serde_json::from_value(members.modes).ok(),
            options: ConfigOption::list(members.config_options),
        }
    }

    /// What people call a mode.
    pub(crate) fn mode_name<'a>(&'a self, id: &'a Untrusted) -> &'a Untrusted {
        let mut modes = self.modes.iter().flat_map(|modes| &modes.available_modes);
        modes.find(|mode| mode.id == *id).and_then(|mode| mode.name.as_ref()).unwrap_or(id)
    }
}

impl ConfigOption {
    /// Reads a `configOptions` list.
    pub(crate) fn list(options: Value) -> Vec<ConfigOption> {
        let Value::Array(options) = options else { return Vec::new() };
        options.into_iter().filter_map(|option| serde_json::from_value(option).ok()).collect()
    }

    /// The values to choose from, of all groups.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.options.iter().flat_map(|entry| match entry {
            Entry::Value(choice) => std::slice::from_ref(choice),
            Entry::Group { options } => options.as_slice(),
        })
    }

    /// The current value as `session/set_config_option` takes it.
    pub(crate) fn value(&self) -> Untrusted {
        match &self.current_value {
            Value::String(value) => value.into(),
            other => Untrusted::of(other),
        }
    }

    /// Its name and value for people: `Model: Opus`.
    pub(crate) fn sentence(&self) -> Text {
        let value = self.value();
        let chosen = self.choices().find(|choice| choice.value == value);
        let value = match (&self.current_value, chosen.and_then(|choice| choice.name.as_ref())) {
            (Value::Bool(on), _) => if *on { "on" } else { "off" }.into(),
            (_, Some(name)) => Text::from(name),
            (_, None) => value.into(),
        };
        text!("{}: {}", self.name.as_ref().unwrap_or(&self.id), value)
    }
}
