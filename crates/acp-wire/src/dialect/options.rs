//! The options of a session: modes, models and config options are one list in version 2.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::objects::{convert_items, items_at, list_of, quoted, rename, value_at};
use crate::{locate, remove_member, set_member, str_at};

/// The id of the option that stands for the modes of a version-1 agent.
pub const MODE_OPTION: &str = "mode";

/// State of version 1 that is an option in version 2.
struct Selector {
    /// Id and category of the option.
    id: &'static str,
    name: &'static str,
    current: &'static str,
    choices: &'static str,
    choice: &'static str,
}

const MODES: Selector = Selector {
    id: MODE_OPTION,
    name: "Mode",
    current: "currentModeId",
    choices: "availableModes",
    choice: "id",
};
const MODELS: Selector = Selector {
    id: "model",
    name: "Model",
    current: "currentModelId",
    choices: "availableModels",
    choice: "modelId",
};

/// The options of a session as version 2 lists them (JSON list).
///
/// `modes`, `options`: as the agent gave them (the `modes` object and the `configOptions` list of
/// version 1); `mode`: the mode in force, newer than `modes.currentModeId`.
pub fn options_to_v2(
    modes: Option<&RawValue>,
    options: Option<&RawValue>,
    mode: Option<&str>,
) -> String {
    let bytes = |raw: &RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
    let list = list_options(modes.map(bytes), None, options.map(bytes), mode);
    String::from_utf8_lossy(&list).into_owned()
}

/// Converts the answer line of `session/new` or `session/fork`: `modes`, `models` and
/// `configOptions` become `configOptions` of version 2. An error response passes unchanged.
pub fn opened_to_v2(line: &Bytes) -> Bytes {
    if !locate(line, &["result"]).is_some_and(|range| line[range].starts_with(b"{")) {
        return line.clone();
    }
    let member = |name| value_at(line, &["result", name]);
    let list = list_options(member("modes"), member("models"), member("configOptions"), None);
    let line = remove_member(&remove_member(line, &["result", "modes"]), &["result", "models"]);
    set_member(&line, &["result", "configOptions"], &list)
}

fn list_options(
    modes: Option<Bytes>,
    models: Option<Bytes>,
    options: Option<Bytes>,
    mode: Option<&str>,
) -> Bytes {
    let options = options.and_then(|options| items_at(&options, &[])).unwrap_or_default();
    let is_missing = |selector: &Selector| {
        let is = |option, name| str_at(option, &[name]).is_some_and(|value| value == selector.id);
        !options.iter().any(|option| is(option, "id") || is(option, "category"))
    };
    let modes = modes.filter(|_| is_missing(&MODES)).and_then(|modes| MODES.option(&modes, mode));
    let models = models.filter(|_| is_missing(&MODELS));
    let models = models.and_then(|models| MODELS.option(&models, None));
    list_of([modes, models].into_iter().flatten().chain(options.iter().map(option_to_v2)))
}

fn option_to_v2(option: &Bytes) -> Bytes {
    let option = rename(option, "id", "configId");
    convert_items(&option, &["options"], |choice| Some(rename(choice, "group", "groupId")))
}

impl Selector {
    /// The option with the members of the state. `None`: the state has no choices or no current one.
    fn option(&self, state: &Bytes, current: Option<&str>) -> Option<Bytes> {
        let option = rename(state, self.current, "currentValue");
        let option = match current {
            Some(current) => set_member(&option, &["currentValue"], quoted(current).as_bytes()),
            None => option,
        };
        let option = rename(&option, self.choices, "options");
        let option = convert_items(&option, &["options"], |choice| {
            Some(rename(choice, self.choice, "value"))
        });
        str_at(&option, &["currentValue"])?;
        items_at(&option, &["options"])?;
        let members =
            [("configId", self.id), ("name", self.name), ("category", self.id), ("type", "select")];
        let set = |option, (name, value): (&str, &str)| {
            set_member(&option, &[name], quoted(value).as_bytes())
        };
        Some(members.into_iter().fold(option, set))
    }
}
