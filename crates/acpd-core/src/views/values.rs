//! The modes and options of a session, which the store keeps, for one client.

use acp_wire::dialect::options_to_v2;
use acp_wire::{build, locate, set_member};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::input::{SessionValues, ValuesForm, View};
use crate::record::ValueKey;
use crate::views::JournalHead;
use crate::views::content::without_boolean_options;

impl JournalHead<'_> {
    pub(crate) fn values(self, form: ValuesForm, view: &View) -> SessionValues {
        SessionValues {
            form,
            session: self.session,
            mode: self.mode.map(str::to_owned),
            boolean_options: view.capabilities.boolean_options,
            version: view.version,
        }
    }
}

impl SessionValues {
    /// Returns the line for the client, made of the stored values.
    pub fn line(&self, values: &[(ValueKey, Bytes)]) -> Bytes {
        match &self.form {
            ValuesForm::Answer { id, extra } => {
                let result = Bytes::from(format!("{{{extra}}}"));
                let result = if self.version.has_modes_as_option() {
                    set_member(&result, &["configOptions"], self.all_options(values).as_bytes())
                } else {
                    self.with_each(values, result)
                };
                set_member(&build::response(id, &json!(null)), &["result"], &result)
            }
            ValuesForm::Update { public_id } => {
                let update = json!({ "sessionUpdate": "config_option_update" });
                let params = json!({ "sessionId": public_id, "update": update });
                let line = build::notification("session/update", &params);
                let options = self.all_options(values);
                set_member(&line, &["params", "update", "configOptions"], options.as_bytes())
            }
        }
    }

    fn with_each(&self, values: &[(ValueKey, Bytes)], mut result: Bytes) -> Bytes {
        for (key, json) in values {
            let mut json = json.clone();
            match (key, &self.mode) {
                (ValueKey::Modes, Some(mode)) if locate(&json, &["currentModeId"]).is_some() => {
                    let mode = json!(mode).to_string();
                    json = set_member(&json, &["currentModeId"], mode.as_bytes());
                }
                (ValueKey::ConfigOptions, _) if !self.boolean_options => {
                    json = without_boolean_options(&json, &[]);
                }
                _ => {}
            }
            result = set_member(&result, &[key.as_str()], &json);
        }
        result
    }

    /// Returns modes and options as one list.
    fn all_options(&self, values: &[(ValueKey, Bytes)]) -> String {
        let of = |wanted| {
            let (_, json) = values.iter().find(|(key, _)| *key == wanted)?;
            serde_json::from_slice::<&RawValue>(json).ok()
        };
        let (modes, options) = (of(ValueKey::Modes), of(ValueKey::ConfigOptions));
        options_to_v2(modes, options, self.mode.as_deref())
    }
}
