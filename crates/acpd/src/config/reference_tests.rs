//! The reference section of `docs/configuration.md`, from the schema.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value as Json, json};

use super::format::fields;
use super::launch::BASE;
use super::profile::{AGENT_KEYS, Profile};
use super::schema::{keys, with_links};
use super::sections::{Host, Workspace, sections};
use super::servers::McpServer;
use super::{Config, parse};

fn read(text: &str) -> Config {
    parse(Path::new("config.toml"), text).unwrap()
}

/// The reference of all keys and of the catalogue, as Markdown.
fn reference() -> String {
    let schema = with_links();
    let tables = &schema["properties"];
    let mut agent_keys = schema["definitions"]["agent"].clone();
    if let Some(keys) = agent_keys["properties"].as_object_mut() {
        keys.retain(|name, _| AGENT_KEYS.contains(&name.as_str()));
    }
    let top = json!({"properties": {"default_agent": tables["default_agent"]}});
    let mut lines = section("Top of the file", &[], &top);
    for (name, order) in sections() {
        lines.extend(section(&format!("`[{name}]`"), &order, &tables[name]));
    }
    let profile = fields::<Profile>();
    let title = "`[defaults]` and `[agents.NAME]`\n\nWhat `[agents.NAME]` says comes before `[defaults]`, which comes \
                 before the catalogue.";
    lines.extend(section(title, &profile, &tables["defaults"]));
    lines.extend(section("Only in `[agents.NAME]`", &profile, &agent_keys));
    let title = "`[mcp.NAME]`\n\nAn MCP server for agents: a `command` or a `url`.";
    let server = &tables["mcp"]["additionalProperties"];
    lines.extend(section(title, &fields::<McpServer>(), server));
    let title = "`[hosts.NAME]`\n\nAnother machine, for [`acpctl --host NAME`](hosts.md).";
    lines.extend(section(title, &fields::<Host>(), &tables["hosts"]["additionalProperties"]));
    let title = "`[[workspace]]`\n\nA directory with settings of its own. They come before those of `[agents.NAME]`. \
                 `retention` is for the sessions of all agents that work here: counted and added up by themselves.";
    lines.extend(section(title, &fields::<Workspace>(), &tables["workspace"]["items"]));
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
    for (name, agent) in read("").agents {
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
    lines.join("\n") + "\n"
}

/// The keys of a table.
fn section(title: &str, order: &[String], table: &Json) -> Vec<String> {
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
    let rows = keys(order, table).into_iter().map(row);
    std::iter::once(head).chain(rows).chain([String::new()]).collect()
}

/// `UPDATE_DOCS=1 cargo test -p acpd --lib` writes the reference into the file.
#[test]
fn the_committed_reference_is_the_generated_one() {
    const BEGIN: &str = "<!-- reference: generated from the declarations of the keys -->\n";
    const END: &str = "<!-- end of the reference -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (committed, after) = rest.split_once(END).unwrap();
    let generated = format!("\n{}\n", reference());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{generated}{END}{after}")).unwrap();
    } else {
        assert!(
            committed == generated,
            "docs/configuration.md is out of date; run this test with UPDATE_DOCS=1"
        );
    }
}
