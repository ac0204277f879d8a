use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::Failure;

const MODES: [(&str, &str); 2] = [("ask", "Ask"), ("code", "Code")];
const MODELS: [(&str, &str); 2] = [("demo-small", "Demo small"), ("demo-large", "Demo large")];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    mode: String,
    model: String,
    verbose: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: MODES[0].0.into(), model: MODELS[0].0.into(), verbose: false }
    }
}

impl Settings {
    pub(crate) fn set_mode(&mut self, mode: &str) -> Result<(), Failure> {
        self.mode = choice(&MODES, mode)?;
        Ok(())
    }

    pub(crate) fn set_option(&mut self, option: &str, value: &Value) -> Result<(), Failure> {
        match (option, value) {
            ("model", Value::String(model)) => self.model = choice(&MODELS, model)?,
            ("verbose", Value::Bool(verbose)) => self.verbose = *verbose,
            _ => {
                return Err(Failure::invalid_params(format!("no option `{option}` takes {value}")));
            }
        }
        Ok(())
    }

    pub(crate) fn modes(&self) -> Value {
        let modes = MODES.map(|(id, name)| json!({"id": id, "name": name}));
        json!({"currentModeId": self.mode, "availableModes": modes})
    }

    /// The boolean option is only for clients that offered to understand it.
    pub(crate) fn config_options(&self, boolean: bool) -> Value {
        let models = MODELS.map(|(value, name)| json!({"value": value, "name": name}));
        let model = json!({"id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": self.model, "options": models});
        let verbose = json!({"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": self.verbose});
        if boolean { json!([model, verbose]) } else { json!([model]) }
    }
}

fn choice(known: &[(&str, &str)], wanted: &str) -> Result<String, Failure> {
    if known.iter().any(|(id, _)| *id == wanted) {
        Ok(wanted.to_owned())
    } else {
        Err(Failure::invalid_params(format!("no such value: {wanted}")))
    }
}
