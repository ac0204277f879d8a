//! Settings of a session: its modes and options.
//!
//! Reading is lenient: what cannot be read is left out.

use acpd_api::Untrusted;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::header::{ConfigOption, Mode};

/// The settings of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Its modes; none if the agent has none.
    pub modes: Option<Modes>,
    /// Its options.
    pub options: Vec<ConfigOption>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    /// The id of the one that it is in.
    pub current_mode_id: Untrusted,
    /// Those to choose from.
    #[serde(default)]
    pub available_modes: Vec<Mode>,
}

impl Settings {
    /// Reads the result of `session/new` or `session/resume`.
    pub fn from_raw(result: &RawValue) -> Settings {
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

    /// The option that stands for the model, the mode or another category.
    pub fn of_category(&self, category: &str) -> Option<&ConfigOption> {
        ConfigOption::of_category(&self.options, category)
    }
}
