//! Modes and options of a session. Unreadable items are skipped.

use acpd_api::Untrusted;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::header::{ConfigOption, Mode};
use crate::lenient;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub modes: Option<Modes>,
    pub options: Vec<ConfigOption>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Modes {
    pub current_mode_id: Untrusted,
    pub available_modes: Vec<Mode>,
}

impl Settings {
    /// Reads the result of `session/new` or `session/resume`.
    pub fn from_raw(result: &RawValue) -> Settings {
        let mut members = lenient::members(result.get()).unwrap_or_default();
        lenient::mend(&mut members);
        let modes = members.remove("modes").and_then(|modes| {
            let current = modes.get("currentModeId").and_then(Value::as_str)?;
            let available = modes.get("availableModes").and_then(Value::as_array);
            let available = available.into_iter().flatten();
            Some(Modes {
                current_mode_id: current.into(),
                available_modes: available
                    .filter_map(|mode| Mode::deserialize(mode).ok())
                    .collect(),
            })
        });
        let options = members.remove("configOptions").unwrap_or_default();
        Settings { modes, options: ConfigOption::list(options) }
    }

    pub fn of_category(&self, category: &str) -> Option<&ConfigOption> {
        ConfigOption::of_category(&self.options, category)
    }
}
