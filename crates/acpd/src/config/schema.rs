//! The JSON schema of the file, from the types that serde reads. Editors complete keys and show
//! mistakes with it; `config show` and the reference take the list of keys from it.

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Value as Json, json};
use toml::de::{DeTable, DeValue};

use crate::config::file::{AGENT_NAME, SERVER_NAME};
use crate::config::format::{pattern, schema_of};
use crate::config::layers::{Layers, json};
use crate::config::profile::{AGENT_KEYS, CATALOGUE_KEYS};
use crate::config::resolved::Config;

/// Returns the JSON schema of the configuration, in the dialect of TOML editors.
pub fn schema() -> Json {
    let unlink = |schema: &mut Schema| {
        if let Some(Json::String(text)) = schema.get_mut("description") {
            *text = without_links(text);
        }
    };
    let mut schema = Schema::try_from(with_links()).unwrap_or_default();
    RecursiveTransform(unlink).transform(&mut schema);
    schema.to_value()
}

pub(super) fn with_links() -> Json {
    let layers = Layers::new(DeTable::new());
    let mut file = schema_of::<Config>();
    let tables = &mut file["properties"];
    for name in ["daemon", "budget", "tui", "policy"] {
        add_defaults(&mut tables[name], layers.defaults[name].get_ref());
    }
    let workspace = &mut tables["workspace"]["items"];
    workspace["required"] = json!(["path"]);
    add_defaults(workspace, layers.defaults["workspace"].get_ref());
    add_defaults(&mut tables["mcp"]["additionalProperties"], layers.defaults["mcp"].get_ref());
    tables["mcp"]["propertyNames"] = pattern(SERVER_NAME);
    add_defaults(&mut tables["hosts"]["additionalProperties"], layers.defaults["hosts"].get_ref());
    tables["hosts"]["propertyNames"] = pattern(SERVER_NAME);
    add_defaults(&mut tables["defaults"], layers.defaults["agents"].get_ref());
    let mut agent = tables["defaults"].clone();
    agent["description"] = json!("What is different for this agent.");
    without(&mut tables["defaults"], &AGENT_KEYS);
    without(&mut tables["defaults"], &CATALOGUE_KEYS);
    without(&mut agent, &CATALOGUE_KEYS);
    add_agents(&mut tables["agents"], &layers);
    file["definitions"] = json!({"agent": agent});
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("acpd");
    file
}

fn add_defaults(schema: &mut Json, defaults: &DeValue<'_>) {
    for (name, value) in defaults.as_table().into_iter().flatten() {
        let property = &mut schema["properties"][name.get_ref().as_ref()];
        if value.get_ref().is_table() && property.get("properties").is_some() {
            add_defaults(property, value.get_ref());
        } else {
            property["default"] = json(value);
        }
    }
}

fn without(schema: &mut Json, keys: &[&str]) {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !keys.contains(&name.as_str()));
    }
}

/// Offers agents of the catalogue by name. Others must have a command or an address.
fn add_agents(agents: &mut Json, layers: &Layers<'_>) {
    let agent = json!({"$ref": "#/definitions/agent"});
    let known = layers.catalogue.iter().map(|(name, known)| {
        let title = known.get_ref().get("title").and_then(|title| title.get_ref().as_str());
        let described = json!({"description": title, "allOf": [agent]});
        (name.get_ref().to_string(), described)
    });
    agents["properties"] = Json::Object(known.collect());
    agents["propertyNames"] = pattern(AGENT_NAME);
    let there = json!({"required": ["tcp"], "properties": {"tcp": {"required": ["connect"]}}});
    agents["additionalProperties"] =
        json!({"allOf": [agent], "anyOf": [{"required": ["command"]}, there]});
}

/// Returns the keys of a table by their dotted names, sorted by the first names in `order`.
pub(super) fn keys<'s>(order: &[String], table: &'s Json) -> Vec<(String, &'s Json)> {
    let mut keys = dotted(table);
    keys.sort_by_cached_key(|(key, _)| {
        let first = key.split('.').next();
        (order.iter().position(|name| Some(name.as_str()) == first), key.clone())
    });
    keys
}

fn dotted(table: &Json) -> Vec<(String, &Json)> {
    let properties = table["properties"].as_object().into_iter().flatten();
    let keys = properties.flat_map(|(name, schema)| match schema.get("properties") {
        Some(_) => {
            let inner = dotted(schema).into_iter();
            inner.map(|(key, schema)| (format!("{name}.{key}"), schema)).collect()
        }
        None => vec![(name.clone(), schema)],
    });
    keys.collect()
}

/// Replaces links with their words, because they lead to other parts of the documentation.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((before, words)), Some((_, behind))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            break;
        };
        out.extend([before, words]);
        rest = behind;
    }
    out + rest
}
