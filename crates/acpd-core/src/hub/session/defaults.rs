//! The configured model and mode of new sessions.
//!
//! acpd sets them for all clients: after the agent has made the session, before a client can send
//! anything in it. The first prompt waits for the agent's answers.
//!
//! Architecture invariant: a setting that the agent does not offer, or refuses, is reported in the
//! conversation, and the session begins without it.

use acp_wire::acp::{ConfigOption, Modes, SetConfigOptionParams, SetModeParams};
use acp_wire::{ErrorObject, Outcome};
use serde_json::value::{RawValue, to_raw_value};

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::profile::Defaults;
use crate::record::{Preset, Purpose};
use crate::session::restore::Values;
use crate::watch::RowKey;

impl Hub {
    pub(crate) fn preset(&mut self, key: SessionKey, (modes, options): Values<'_>) {
        let row = &self.session(key).row;
        let Defaults { model, mode } = self.cx.config.defaults(&row.agent, &row.cwd);
        // The model comes first: what a mode means may depend on it.
        for (what, wanted) in [("model", model), ("mode", mode)] {
            let Some(wanted) = wanted else { continue };
            let mode = (what == "mode").then(|| offered_mode(modes, &wanted)).flatten();
            let Some(preset) = mode.or_else(|| offered_option(options, what, &wanted)) else {
                let text =
                    format!("the agent does not offer the {what} `{wanted}` of the configuration");
                self.notice(key, "warning", &text);
                continue;
            };
            let session = self.session(key);
            let (slot, id) = (session.slot, session.row.agent_id.clone());
            let why = Purpose::Preset { session: key, preset: preset.clone() };
            match &preset {
                Preset::Mode { mode } => {
                    let params = SetModeParams { session_id: &id, mode_id: mode };
                    self.request(slot, why, "session/set_mode", &params);
                }
                Preset::Option { option, value } => {
                    let value = to_raw_value(value).expect("a string");
                    let params = SetConfigOptionParams::new(&id, option, &value);
                    self.request(slot, why, "session/set_config_option", &params);
                }
            }
        }
    }

    pub(crate) fn note_default_mode(&mut self, key: SessionKey) {
        let row = &self.session(key).row;
        let (agent, mode) = (row.agent.clone(), row.mode.clone());
        if self.cx.config.defaults(&agent, &row.cwd).mode.is_none() {
            let known = self.processes.known_mut(&agent);
            if known.begins_in != mode {
                known.begins_in = mode;
                self.watch.changed(RowKey::Agent(agent));
            }
        }
    }

    /// `outcome`: `None` if the agent does not answer in time.
    pub(crate) fn preset_answered(
        &mut self,
        key: SessionKey,
        preset: &Preset,
        outcome: Option<Outcome<'_>>,
    ) {
        if !self.sessions.contains_key(&key) {
            return;
        }
        let (what, value) = match preset {
            Preset::Mode { mode } => ("mode", mode),
            Preset::Option { option, value } => (option.as_str(), value),
        };
        match (outcome, preset) {
            (Some(Outcome::Result(_)), Preset::Mode { mode }) => self.tell_mode(key, mode, None),
            (Some(Outcome::Result(result)), Preset::Option { .. }) => {
                self.tell_options(key, result, None);
            }
            (Some(Outcome::Error(error)), _) => {
                let why = ErrorObject::from_raw(error).message;
                let text = format!(
                    "the agent refused `{value}` as its {what}, which the configuration wants: {why}"
                );
                self.notice(key, "warning", &text);
            }
            (None, _) => {
                let text = format!("the agent does not answer whether `{value}` is its {what} now");
                self.notice(key, "warning", &text);
            }
        }
        self.wake_session(key);
    }
}

fn offered_mode(modes: Option<&RawValue>, wanted: &str) -> Option<Preset> {
    let mut modes = Modes::from_raw(modes?).ok()?.available.into_iter();
    let mode = modes.find(|mode| mode.id == wanted || mode.name == wanted)?;
    Some(Preset::Mode { mode: mode.id })
}

fn offered_option(options: Option<&RawValue>, category: &str, wanted: &str) -> Option<Preset> {
    let mut options = ConfigOption::list(options?).into_iter();
    let option = options.find(|option| option.category.as_deref() == Some(category))?;
    let mut choices = option.choices.into_iter();
    let (value, _) = choices.find(|(value, name)| value == wanted || name == wanted)?;
    Some(Preset::Option { option: option.id, value })
}
