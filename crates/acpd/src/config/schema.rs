//! The JSON schema of the file, from the declarations of the keys: with it editors complete keys and show what is
//! wrong while one writes.

use std::collections::BTreeMap;

use serde_json::json;

use crate::config::catalogue;
use crate::config::keys::schema::{Schema, entries_of, table_of};
use crate::config::keys::{Key, Keys, Scope, kind};
use crate::config::tables::mcp::{self, McpServer};
use crate::config::tables::policy;
use crate::config::tables::profile::{Budget, Daemon, Hooks, Profile, Root, Tui, Workspace};
use crate::config::tables::retention::Retention;

/// The JSON schema of the configuration. Its dialect is the one that editors of TOML know.
///
/// # Panics
/// When the built-in catalogue cannot be read, which the tests exclude.
pub fn schema() -> Schema {
    let mut file = table::<Root>(Scope::Shared, "The configuration of acpd.");
    let tables = [
        ("daemon", table::<Daemon>(Scope::Shared, "How the daemon itself behaves.")),
        ("hooks", table::<Hooks>(Scope::Shared, "Commands that are run when something happens.")),
        ("budget", table::<Budget>(Scope::Shared, "What may be spent.")),
        ("retention", table::<Retention>(Scope::Shared, "How much of what was said is kept.")),
        ("tui", table::<Tui>(Scope::Shared, "How acpd's own views look.")),
        ("defaults", table::<Profile>(Scope::Shared, "What counts for every agent.")),
        ("agents", agents()),
        ("workspace", workspaces()),
        ("mcp", servers()),
        ("policy", policy::schema()),
    ];
    for (name, table) in tables {
        file["properties"][name] = table;
    }
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("acpd");
    file["definitions"] =
        json!({"agent": table::<Profile>(Scope::Agent, "What is different for this agent.")});
    file
}

/// Agents of the catalogue are offered by their names; others must say how they are started or where they are.
fn agents() -> Schema {
    let known = catalogue::KNOWN.iter().map(|(name, profile)| {
        let agent = json!({"$ref": "#/definitions/agent"});
        let title = profile.title.as_deref().unwrap_or(name);
        (name.as_str(), json!({"description": title, "allOf": [agent]}))
    });
    let there = json!({"required": ["tcp"], "properties": {"tcp": {"required": ["connect"]}}});
    let own = json!({
        "allOf": [{"$ref": "#/definitions/agent"}],
        "anyOf": [{"required": ["command"]}, there]
    });
    let mut agents = entries_of(kind::NAME_PATTERN, &own);
    agents["properties"] = json!(known.collect::<BTreeMap<_, _>>());
    described(agents, "Agents: those that acpd knows, and your own.")
}

fn workspaces() -> Schema {
    let mut one = table::<Workspace>(Scope::Shared, "A directory with settings of its own.");
    one["required"] = json!(["path"]);
    described(json!({"type": "array", "items": one}), "Directories with settings of their own.")
}

fn servers() -> Schema {
    let one = table::<McpServer>(Scope::Shared, "An MCP server: a `command` or a `url`.");
    described(entries_of(mcp::NAME_PATTERN, &one), "MCP servers for agents.")
}

/// A table with the keys that may stand where `scope` says.
fn table<T: Keys>(scope: Scope, about: &str) -> Schema {
    let keys = T::keys();
    let mut root = table_of(BTreeMap::new());
    for key in keys.iter().filter(|key| key.scope <= scope) {
        let mut place = &mut root;
        let mut names: Vec<&str> = key.name.split('.').collect();
        let last = names.pop().unwrap_or_default();
        for name in names {
            place = &mut place["properties"][name];
            if place.is_null() {
                *place = table_of(BTreeMap::new());
            }
        }
        place["properties"][last] = entry(key);
    }
    described(root, about)
}

/// What may be written for a key, what it means and what it is without.
fn entry<T>(key: &Key<T>) -> Schema {
    let doc: Vec<&str> = key.doc.iter().map(|line| line.trim()).collect();
    let mut entry = described((key.schema)(), &without_links(&doc.join(" ")));
    let default = (key.default)();
    let default = format!("default = {default}").parse::<toml::Table>().ok();
    if let Some(default) = default.and_then(|mut table| table.remove("default")) {
        entry["default"] = json!(default);
    }
    entry
}

fn described(mut schema: Schema, about: &str) -> Schema {
    schema["description"] = json!(about);
    schema
}

/// Links lead from the documentation to other parts of it; elsewhere only their words have a meaning.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((words, target)) = after.split_once("](") else { break };
        let Some((_, behind)) = target.split_once(')') else { break };
        out.extend([before, words]);
        rest = behind;
    }
    out + rest
}
