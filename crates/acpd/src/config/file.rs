//! The whole file, with checks of values that must fit together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use acpd_policy::{PolicyConfig, RuleConfig};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::document::{self, Value, in_order, is_misplaced};
use crate::config::error::{ConfigError, SourceText, did_you_mean};
use crate::config::layers::{Layers, get, json};
use crate::config::profile::{CATALOGUE_KEYS, Profile};
use crate::config::resolved::{Config, DEMO_AGENT, policy};
use crate::config::sections::{Host, Workspace};
use crate::config::servers::{McpServer, contradiction};

pub(super) const AGENT_NAME: &str = "^[a-z][a-z0-9-]*$";
/// Agents make names of tools out of a server's name.
pub(super) const SERVER_NAME: &str = "^[A-Za-z0-9_-]+$";

/// Reads the user's file over the agents of the catalogue, with the layers of all tables. Reports
/// all mistakes, except those that may follow from another one: a table with mistakes is not
/// checked further.
pub(super) fn read<'t>(
    path: &'t Path,
    content: &'t str,
) -> Result<(Config, Layers<'t>), ConfigError> {
    let text = SourceText::new(path, content);
    let document = document::parse(&text)?;
    let (mut allowed, mut flawed) = (document.clone(), BTreeSet::new());
    take_misplaced(&text, &mut allowed, &mut flawed);
    let layers = Layers::new(document::sift::<Config>(&text, allowed, &mut flawed));
    let mut config: Config = document::read(layers.merged()).unwrap_or_else(|_| {
        // Each part was readable alone.
        let message = "the parts of the configuration do not fit together";
        text.mistake(&(0..0), message.to_owned(), None);
        Config::default()
    });
    // The agents include them.
    config.defaults = Profile::default();
    let check = Check { text: &text, document: &document, layers: &layers, flawed: &flawed };
    let configured = check.agents(&mut config.agents);
    check.servers(&mut config.mcp, &config.agents);
    check.hosts(&config.hosts);
    check.workspaces(&config.workspaces, &config.agents);
    check.rules(&config.policy.rules);
    if !layers.file.contains_key("default_agent") {
        config.default_is_found = configured.is_none();
        config.default_agent = configured.unwrap_or_else(|| DEMO_AGENT.to_owned());
    }
    check.default_agent(&config);
    text.checked((config, layers))
}

/// Removes and reports keys that stand in the wrong table.
fn take_misplaced(
    text: &SourceText<'_>,
    document: &mut DeTable<'_>,
    flawed: &mut BTreeSet<String>,
) {
    let mut take = |header: &str, value: &mut Value<'_>| {
        let DeValue::Table(table) = value.get_mut() else { return };
        let misplaced = table.keys().filter(|name| is_misplaced(header, name.get_ref()));
        for name in misplaced.cloned().collect::<Vec<_>>() {
            table.remove(&name);
            flawed.insert(header.to_owned());
            let key = name.get_ref().as_ref();
            let hint = (!CATALOGUE_KEYS.contains(&key))
                .then(|| format!("set `{key}` in the `[agents.NAME]` table it is meant for"));
            text.mistake(&name.span(), format!("`{key}` cannot be set in `[{header}]`"), hint);
        }
    };
    if let Some(defaults) = document.get_mut("defaults") {
        take("defaults", defaults);
    }
    if let Some(DeValue::Table(agents)) = document.get_mut("agents").map(Spanned::get_mut) {
        for (name, agent) in agents {
            take(&format!("agents.{}", name.get_ref()), agent);
        }
    }
}

struct Check<'c, 't> {
    text: &'c SourceText<'t>,
    document: &'c DeTable<'t>,
    layers: &'c Layers<'t>,
    flawed: &'c BTreeSet<String>,
}

type Agents = BTreeMap<String, Profile>;

impl<'t> Check<'_, 't> {
    fn mistake(&self, span: &Range<usize>, message: String, hint: &str) {
        self.text.mistake(span, message, Some(hint.to_owned()));
    }

    fn names(&self, table: &str) -> Vec<(String, Range<usize>)> {
        let table = self.document.get(table).and_then(|table| table.get_ref().as_table());
        let names = table.into_iter().flat_map(in_order);
        names.map(|(name, _)| (name.get_ref().to_string(), name.span())).collect()
    }

    /// Returns a table without mistakes.
    fn flawless(&self, header: &str) -> Option<&DeTable<'t>> {
        self.layers.table(header).filter(|_| !self.flawed.contains(header))
    }

    /// Returns the first enabled agent of the file.
    fn agents(&self, agents: &mut Agents) -> Option<String> {
        agents.retain(|name, _| is_agent_name(name));
        for (position, (name, known)) in in_order(&self.layers.catalogue).into_iter().enumerate() {
            let Some(profile) = agents.get_mut(&**name.get_ref()) else { continue };
            let own = self.layers.table(&format!("agents.{}", name.get_ref()));
            profile.position = Some(position);
            profile.is_known_command =
                !own.is_some_and(|own| own.contains_key("command")) && !profile.is_remote();
            let inherited = known.get_ref().get("inherit_env").map(Spanned::get_ref);
            let inherited = inherited.and_then(DeValue::as_array);
            profile.known_variables = inherited.map_or(0, |names| names.len());
        }
        let mut configured = None;
        for (name, span) in self.names("agents") {
            if !is_agent_name(&name) {
                let hint = "a name is made of lower-case letters, digits and `-`, and begins with a letter";
                self.mistake(&span, format!("`{name}` is not a name for an agent"), hint);
                continue;
            }
            let profile = agents.entry(name.clone()).or_default();
            if profile.enabled && configured.is_none() {
                configured = Some(name.clone());
            }
            let lacks_command = profile.command.is_empty() && !profile.is_remote();
            if self.flawless(&format!("agents.{name}")).is_none() {
                // The misfit may follow from the mistake.
            } else if let Some((what, hint)) = profile.contradiction() {
                self.mistake(&span, format!("agent `{name}` {what}"), hint);
            } else if lacks_command {
                let others = agents.keys().map(String::as_str).filter(|other| *other != name);
                let hint = did_you_mean(&name, others)
                    .unwrap_or_else(|| format!("say how to start it: `command = [\"{name}\", …]`"));
                self.mistake(&span, format!("agent `{name}` has no `command`"), &hint);
            }
        }
        for (name, profile) in agents {
            profile.name.clone_from(name);
        }
        configured
    }

    fn servers(&self, servers: &mut BTreeMap<String, McpServer>, agents: &Agents) {
        let is_default = |key: &str, value: &Value<'_>| {
            let default = get(&self.layers.defaults, &format!("mcp.{key}"));
            default.is_some_and(|default| json(default) == json(value))
        };
        for (name, span) in self.names("mcp") {
            if !self.is_plain_name(&name, &span, "an MCP server") {
                continue;
            }
            let Some(server) = servers.get_mut(&name) else { continue };
            let header = format!("mcp.{name}");
            let contradiction = self.flawless(&header).and_then(|table| {
                let has = |key: &str| table.get(key).is_some_and(|value| !is_default(key, value));
                contradiction(&name, has)
            });
            if let Some((what, hint)) = contradiction {
                self.mistake(&span, format!("MCP server `{name}` {what}"), hint);
            }
            let list = get(&self.layers.file, &format!("{header}.agents"));
            let span = list.map_or(span, Spanned::span);
            self.check_names(&span, &format!("`agents` in `[{header}]`"), &server.agents, agents);
            server.name = name;
        }
    }

    fn hosts(&self, hosts: &BTreeMap<String, Host>) {
        for (name, span) in self.names("hosts") {
            let is_plain = self.is_plain_name(&name, &span, "a host");
            if ["all", "here"].contains(&name.as_str()) {
                let hint = "give the machine another name";
                self.mistake(&span, format!("`{name}` cannot be the name of a host"), hint);
            }
            let Some(host) = hosts.get(&name).filter(|_| is_plain) else { continue };
            for there in host.map.values().filter(|there| there.starts_with('~')) {
                let hint = "it is not known here where your home is there: write the whole path";
                let text = format!("`map` in `[hosts.{name}]` leads to `{there}`");
                self.mistake(&span, text, hint);
            }
        }
    }

    fn is_plain_name(&self, name: &str, span: &Range<usize>, of: &str) -> bool {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_plain = !name.is_empty() && name.chars().all(is_allowed);
        if !is_plain {
            let hint = "a name is made of letters, digits, `-` and `_`";
            self.mistake(span, format!("`{name}` is not a name for {of}"), hint);
        }
        is_plain
    }

    fn workspaces(&self, workspaces: &[Workspace], agents: &Agents) {
        let written = self.document.get("workspace").and_then(|list| list.get_ref().as_array());
        for table in written.into_iter().flat_map(|list| list.iter()) {
            if table.get_ref().is_table() && table.get_ref().get("path").is_none() {
                let hint = "say which directory it is: `path = \"~/src/api\"`";
                self.mistake(&table.span(), "`[[workspace]]` has no `path`".to_owned(), hint);
            }
        }
        for (table, workspace) in self.layers.workspaces().iter().zip(workspaces) {
            self.check_names(&table.span(), "`agent` in `[[workspace]]`", &workspace.agent, agents);
        }
    }

    fn check_names<'n>(
        &self,
        span: &Range<usize>,
        key: &str,
        names: impl IntoIterator<Item = &'n String>,
        agents: &Agents,
    ) {
        for unknown in names.into_iter().filter(|name| !agents.contains_key(*name)) {
            let hint = did_you_mean(unknown, agents.keys().map(String::as_str));
            self.text.mistake(span, format!("{key}: no agent is called `{unknown}`"), hint);
        }
    }

    /// Checks each rule alone, because `acpd_policy` stops at the first unusable one.
    fn rules(&self, rules: &[RuleConfig]) {
        let list = |document: &DeTable<'t>| -> Vec<Range<usize>> {
            let rules = get(document, "policy.rules").and_then(|rules| rules.get_ref().as_array());
            rules.into_iter().flat_map(|rules| rules.iter()).map(Spanned::span).collect()
        };
        let written = list(self.document);
        for (rule, span) in rules.iter().zip(list(&self.layers.file)) {
            let at = written.iter().position(|other| *other == span).map_or(0, |at| at + 1);
            let name = rule.name.clone().or_else(|| Some(format!("rule {at}")));
            let rules = vec![RuleConfig { name, ..rule.clone() }];
            if let Err(error) = policy(&PolicyConfig { rules, ..PolicyConfig::default() }) {
                let hint = error.hint.map(str::to_owned);
                self.text.mistake(&span, format!("`policy`: {error}"), hint);
            }
        }
    }

    fn default_agent(&self, config: &Config) {
        if let (Err(unknown), Some(value)) =
            (config.agent(&config.default_agent), self.layers.file.get("default_agent"))
        {
            let message = format!("`default_agent`: {}", unknown.message);
            self.text.mistake(&value.span(), message, unknown.hint);
        }
    }
}

fn is_agent_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_allowed)
}
