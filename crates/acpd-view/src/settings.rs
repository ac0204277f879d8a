//! Modes and options of a session. Unreadable items are skipped.

use acpd_api::Untrusted;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::header::{ConfigOption, Mode};
use crate::lenient::{self, list_in};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub modes: Option<Modes>,
    pub options: Vec<ConfigOption>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    pub current_mode_id: Untrusted,
    #[serde(default, deserialize_with = "list_in")]
    pub available_modes: Vec<Mode>,
}

impl Settings {
    /// Reads the result of `session/new` or `session/resume`.
    pub fn from_raw(result: &RawValue) -> Settings {
        let mut members = lenient::members(result.get()).unwrap_or_default();
        lenient::mend(&mut members);
        let modes = members.get("modes").and_then(|modes| Modes::deserialize(modes).ok());
        Settings { modes, options: lenient::list(members.get("configOptions")) }
    }

    pub fn of_category(&self, category: &str) -> Option<&ConfigOption> {
        ConfigOption::of_category(&self.options, category)
    }
}
