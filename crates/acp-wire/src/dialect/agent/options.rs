//! The options of a session: version 1 has modes, too.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;

use crate::dialect::objects::{
    convert_items, items_at, list_of, object_of, quoted, rename, value_at,
};
use crate::{set_member, str_at};

/// The options that have methods of their own in version 1, as the session lists them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Options {
    mode: Option<Selected>,
    model: Option<Selected>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Selected {
    id: String,
    value: String,
}

impl Options {
    /// The option that `session/set_mode` sets.
    pub(super) fn mode_id(&self) -> &str {
        self.mode.as_ref().map_or("mode", |mode| &mode.id)
    }

    /// `options`: the JSON texts of their values, by id. The agent tells the category only when it
    /// lists the options, so the mode is the option with its value.
    pub(super) fn restore_mode(&mut self, mode: &str, options: &BTreeMap<String, String>) {
        let value = quoted(mode);
        let is_it = |id: &&String| options.get(*id) == Some(&value);
        let usual = "mode".to_owned();
        let id = [&usual].into_iter().chain(options.keys()).find(is_it);
        let mode = id.map(|id| Selected { id: id.clone(), value: mode.to_owned() });
        self.mode = mode;
    }

    /// The option that `session/set_model` sets.
    pub(super) fn model_id(&self) -> &str {
        self.model.as_ref().map_or("model", |model| &model.id)
    }

    /// Converts the answer to a request that opens a session.
    pub(super) fn in_answer(&mut self, answer: Bytes) -> Bytes {
        const OPTIONS: [&str; 2] = ["result", "configOptions"];
        let Some(options) = items_at(&answer, &OPTIONS) else { return answer };
        self.note(&options);
        let modes = options.iter().find(|option| is_of(option, "mode")).and_then(modes_of);
        let answer = set_member(&answer, &OPTIONS, &options_from_v2(&options));
        modes.map_or_else(
            || answer.clone(),
            |modes| set_member(&answer, &["result", "modes"], &modes),
        )
    }

    /// Converts the options at a path. Returns the mode as well, if it is another one now.
    pub(super) fn in_list(&mut self, json: &Bytes, path: &[&str]) -> (Bytes, Option<String>) {
        let Some(options) = items_at(json, path) else { return (json.clone(), None) };
        let before = self.mode.clone();
        self.note(&options);
        let mode = self.mode.as_ref().filter(|mode| before.as_ref() != Some(mode));
        let mode = mode.map(|mode| mode.value.clone());
        (set_member(json, path, &options_from_v2(&options)), mode)
    }

    fn note(&mut self, options: &[Bytes]) {
        let of = |category| {
            let option = options.iter().find(|option| is_of(option, category))?;
            let text = |name| str_at(option, &[name]).map(Cow::into_owned);
            Some(Selected { id: text("configId")?, value: text("currentValue")? })
        };
        (self.mode, self.model) = (of("mode"), of("model"));
    }
}

fn is_of(option: &Bytes, category: &str) -> bool {
    str_at(option, &["category"]).is_some_and(|name| name == category)
}

fn options_from_v2(options: &[Bytes]) -> Bytes {
    list_of(options.iter().map(|option| {
        let option = rename(option, "configId", "id");
        convert_items(&option, &["options"], |choice| Some(rename(choice, "groupId", "group")))
    }))
}

/// The `modes` of version 1 in an option.
fn modes_of(option: &Bytes) -> Option<Bytes> {
    let current = value_at(option, &["currentValue"]).filter(|value| value.starts_with(b"\""))?;
    let choices = items_at(option, &["options"])?;
    let choices = choices
        .iter()
        .flat_map(|choice| items_at(choice, &["options"]).unwrap_or_else(|| vec![choice.clone()]));
    let modes = list_of(choices.map(|choice| rename(&choice, "value", "id")));
    let name = |name| Bytes::from(quoted(name));
    Some(object_of([(name("currentModeId"), current), (name("availableModes"), modes)]))
}
