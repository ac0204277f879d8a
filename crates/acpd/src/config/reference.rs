//! The reference section of `docs/configuration.md`, from the schema.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::config::launch::BASE;
use crate::config::profile::{AGENT_KEYS, Profile};
use crate::config::resolved::Config;
use crate::config::schema::{keys, with_links};
use crate::config::sections::{Budget, Daemon, Hooks, Retention, Tui, Workspace};
use crate::config::servers::McpServer;
use crate::config::{ConfigError, parse};

/// The reference of all keys and of the catalogue, as Markdown.
///
/// # Errors
/// When the built-in catalogue cannot be read, which the tests exclude.
pub fn reference_markdown() -> Result<String, ConfigError> {
    let schema = with_links();
    let tables = &schema["properties"];
    let mut agent_keys = schema["definitions"]["agent"].clone();
    if let Some(keys) = agent_keys["properties"].as_object_mut() {
        keys.retain(|name, _| AGENT_KEYS.contains(&name.as_str()));
    }
    let top = json!({"properties": {"default_agent": tables["default_agent"]}});
    let mut lines = section::<Config>("Top of the file", &top);
    lines.extend(section::<Daemon>("`[daemon]`", &tables["daemon"]));
    lines.extend(section::<Hooks>("`[hooks]`", &tables["hooks"]));
    lines.extend(section::<Budget>("`[budget]`", &tables["budget"]));
    lines.extend(section::<Retention>("`[retention]`", &tables["retention"]));
    lines.extend(section::<Tui>("`[tui]`", &tables["tui"]));
    let title = "`[defaults]` and `[agents.NAME]`\n\nWhat `[agents.NAME]` says comes before `[defaults]`, which comes \
                 before the catalogue.";
    lines.extend(section::<Profile>(title, &tables["defaults"]));
    lines.extend(section::<Profile>("Only in `[agents.NAME]`", &agent_keys));
    let title = "`[mcp.NAME]`\n\nAn MCP server for agents: a `command` or a `url`.";
    lines.extend(section::<McpServer>(title, &tables["mcp"]["additionalProperties"]));
    let title = "`[[workspace]]`\n\nA directory with settings of its own. They come before those of `[agents.NAME]`. \
                 `retention` is for the sessions of all agents that work here: counted and added up by themselves.";
    lines.extend(section::<Workspace>(title, &tables["workspace"]["items"]));
    let names: Vec<_> = BASE.iter().map(|name| format!("`{name}`")).collect();
    lines.push(format!(
        "### Environment that every agent gets\n\nFrom the daemon's own environment, compared without regard to \
         case: {}. A `HOME` that is missing there is the one that the system knows.\n",
        names.join(" ")
    ));
    lines.push(
        "### Known agents\n\n| name | agent | command | tested | install | login |".to_owned(),
    );
    lines.push("| --- | --- | --- | --- | --- | --- |".to_owned());
    let code = |text: Option<&str>| text.map_or_else(String::new, |text| format!("`{text}`"));
    for (name, agent) in parse(Path::new("catalogue.toml"), "")?.agents {
        let command =
            if agent.builtin { "built in" } else { &code(Some(&agent.command.join(" "))) };
        lines.push(format!(
            "| `{name}` | {} | {command} | {} | {} | {} |",
            agent.title.as_deref().unwrap_or_default(),
            if agent.tried { "yes" } else { "no" },
            code(agent.install.as_deref()),
            code(agent.login.as_deref()),
        ));
    }
    Ok(lines.join("\n") + "\n")
}

/// The keys of the table of a `T`.
fn section<T: DeserializeOwned>(title: &str, table: &Json) -> Vec<String> {
    let head =
        format!("### {title}\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |");
    let row = |(key, schema): (String, &Json)| {
        let default = schema.get("default").and_then(|default| toml::Value::try_from(default).ok());
        let default = default.map_or_else(|| "unset".to_owned(), |default| format!("`{default}`"));
        let values = match (schema["title"].as_str(), schema["type"].as_str()) {
            (Some(title), _) => title,
            (None, Some("boolean")) => "true or false",
            (None, Some("string")) => "a string",
            _ => "a table",
        };
        let meaning = schema["description"].as_str().unwrap_or_default();
        format!("| `{key}` | {values} | {default} | {meaning} |")
    };
    let rows = keys::<T>(table).into_iter().map(row);
    std::iter::once(head).chain(rows).chain([String::new()]).collect()
}
