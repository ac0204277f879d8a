//! Reads the text of a configuration file into values, and names the place of everything that is wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use acpd_policy::{PolicyConfig, RuleConfig};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::config::error::{ConfigError, Text, did_you_mean};
use crate::config::keys::fault::Fault;
use crate::config::keys::{Key, Keys, Scope, kind};
use crate::config::resolved::{Config, DEMO_AGENT, policy};
use crate::config::tables::mcp::{self, McpServer};
use crate::config::tables::profile::{
    Budget, Daemon, Hooks, Profile, Root, Source, Transport, Tui, Workspace,
};
use crate::config::tables::retention::Retention;

/// Keys that acpd no longer has: the table, the key, and what to do instead.
const REMOVED: [(&str, &str, &str); 2] = [
    ("daemon", "host", "delete it: each agent has a shim"),
    ("tui", "keys", "delete it: the keys of the screens are fixed, and `?` or `^G` shows them"),
];

type Name<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

/// Reads the user's file over the agents of the catalogue.
///
/// All mistakes are told, but for those that may come of another one: while it is no TOML nothing in it is
/// understood, and what must fit together is looked at where all of it could be read.
pub(super) fn read(
    path: &Path,
    text: &str,
    catalogue: BTreeMap<String, Profile>,
) -> Result<Config, ConfigError> {
    let text = Text::new(path, text);
    let document = document(&text)?;
    let config = config(&text, document.get_ref(), catalogue);
    text.checked(config)
}

/// Reads all sections. What is wrong in them is noted in the text, and left out.
fn config(text: &Text<'_>, document: &DeTable<'_>, catalogue: BTreeMap<String, Profile>) -> Config {
    let top = Section::new(text, None, Scope::Shared);
    let mut root = Root::default();
    let mut daemon = Daemon::default();
    let mut hooks = Hooks::default();
    let mut budget = Budget::default();
    let mut retention = Retention::default();
    let mut tui = Tui::default();
    let mut workspaces = Vec::new();
    let (mut defaults, mut tables, mut servers) = (None, None, None);
    let mut policy = PolicyConfig::default();
    for (name, value) in in_order(document) {
        match name.get_ref().as_ref() {
            "daemon" => top.section("daemon", value, &mut daemon),
            "hooks" => top.section("hooks", value, &mut hooks),
            "budget" => top.section("budget", value, &mut budget),
            "retention" => top.section("retention", value, &mut retention),
            "tui" => top.section("tui", value, &mut tui),
            "defaults" => defaults = top.table("defaults", value),
            "agents" => tables = top.table("agents", value),
            "workspace" => workspaces = read_workspaces(&top, value),
            "mcp" => servers = top.table("mcp", value),
            "policy" => policy = read_policy(&top, value),
            known if Root::keys().iter().any(|key| key.name == known) => {
                top.entry(&Root::keys(), known, name, value, &mut root);
            }
            unknown => top.unknown(name, unknown, top_level_hint(unknown)),
        }
    }

    let (agents, configured) = read_agents(&top, defaults, tables, catalogue);
    let mcp = servers.map(|tables| read_servers(&top, tables, &agents)).unwrap_or_default();
    let names = || agents.keys().map(String::as_str);
    for (span, workspace) in &workspaces {
        if let Some(unknown) = workspace.agent.as_ref().filter(|agent| !agents.contains_key(*agent))
        {
            let message = format!("`agent` in `[[workspace]]`: no agent is called `{unknown}`");
            text.mistake(span, message, did_you_mean(unknown, names()));
        }
    }
    let workspaces = workspaces.into_iter().map(|(_, workspace)| workspace).collect();
    let default_agent = root.default_agent.or_else(|| configured.first().cloned());
    let default_is_found = default_agent.is_none();
    let default_agent = default_agent.unwrap_or_else(|| DEMO_AGENT.to_owned());
    let config = Config {
        daemon,
        hooks,
        budget,
        retention,
        tui,
        workspaces,
        policy,
        default_agent,
        default_is_found,
        agents,
        mcp,
    };
    check_default(text, document, &config);
    config
}

/// The agents of the catalogue with what `[defaults]` and the tables of agents say, and which of them have such a
/// table, in the order of the file.
fn read_agents(
    top: &Section<'_>,
    defaults: Option<&DeTable<'_>>,
    tables: Option<&DeTable<'_>>,
    catalogue: BTreeMap<String, Profile>,
) -> (BTreeMap<String, Profile>, Vec<String>) {
    let text = top.text;
    let fresh = |profile: Profile| over_defaults(text, defaults, profile);
    let known = catalogue.into_iter().map(|(name, profile)| (name, fresh(profile)));
    let mut agents: BTreeMap<String, Profile> = known.collect();
    let mut configured = Vec::new();
    for (key, value) in tables.into_iter().flat_map(in_order) {
        let name = key.get_ref().to_string();
        if !kind::valid_name(&name) {
            let message = format!("`{name}` is not a name for an agent");
            text.mistake(&key.span(), message, Some(kind::NAME_RULE.to_owned()));
            continue;
        }
        let (mut profile, source) = match agents.remove(&name) {
            Some(known) => (known, Source::Both),
            None => (fresh(Profile::named(&name)), Source::User),
        };
        let header = format!("agents.{name}");
        let before = text.mistakes();
        if let Some(table) = top.table(&header, value) {
            Section::new(text, Some(header), Scope::Agent).profile(table, &mut profile);
            let starts_nothing = matches!(profile.transport(), Transport::TcpConnect(_));
            if starts_nothing && table.get("command").is_none() {
                profile.drop_known_command();
            }
            if text.mistakes() > before {
                // What is left of it need not fit together.
            } else if let Some((what, hint)) = profile.contradiction() {
                let message = format!("agent `{name}` {what}");
                text.mistake(&key.span(), message, Some(hint.to_owned()));
            } else if profile.command.is_empty() && !starts_nothing {
                let hint = did_you_mean(&name, agents.keys().map(String::as_str))
                    .unwrap_or_else(|| format!("say how to start it: `command = [\"{name}\", …]`"));
                text.mistake(&key.span(), format!("agent `{name}` has no `command`"), Some(hint));
            }
        }
        profile.source = source;
        if profile.enabled {
            configured.push(name.clone());
        }
        agents.insert(name, profile);
    }
    for profile in agents.values_mut() {
        profile.finish();
    }
    (agents, configured)
}

/// Directories with settings of their own, with their places.
fn read_workspaces(top: &Section<'_>, value: &Value<'_>) -> Vec<(Range<usize>, Workspace)> {
    let Some(items) = value.get_ref().as_array() else {
        let fault = Fault::wrong_type(value, "a list of tables: `[[workspace]]`");
        top.fault("workspace", fault);
        return Vec::new();
    };
    let mut workspaces = Vec::new();
    for item in items {
        let Some(table) = top.table("workspace", item) else { continue };
        let mut workspace = Workspace::default();
        let section = Section::new(top.text, Some("[workspace]".to_owned()), Scope::Shared);
        section.apply(table, &mut workspace);
        if table.get("path").is_none() {
            let hint = "say which directory it is: `path = \"~/src/api\"`".to_owned();
            top.text.mistake(&item.span(), "`[[workspace]]` has no `path`".to_owned(), Some(hint));
        }
        workspaces.push((item.span(), workspace));
    }
    workspaces
}

/// The tables of MCP servers, which may be for some of the `agents` only.
fn read_servers(
    top: &Section<'_>,
    tables: &DeTable<'_>,
    agents: &BTreeMap<String, Profile>,
) -> BTreeMap<String, McpServer> {
    let text = top.text;
    let mut servers = BTreeMap::new();
    for (key, value) in in_order(tables) {
        let name = key.get_ref().to_string();
        if !mcp::valid_name(&name) {
            let message = format!("`{name}` is not a name for an MCP server");
            text.mistake(&key.span(), message, Some(mcp::NAME_RULE.to_owned()));
            continue;
        }
        let header = format!("mcp.{name}");
        let Some(table) = top.table(&header, value) else { continue };
        let mut server = McpServer::named(&name);
        let before = text.mistakes();
        Section::new(text, Some(header), Scope::Shared).apply(table, &mut server);
        if let Some((what, hint)) = server.contradiction().filter(|_| text.mistakes() == before) {
            let message = format!("MCP server `{name}` {what}");
            text.mistake(&key.span(), message, Some(hint.to_owned()));
        }
        for unknown in server.agents.iter().filter(|agent| !agents.contains_key(*agent)) {
            let span = table.get("agents").map_or_else(|| key.span(), Spanned::span);
            let message = format!("`agents` in `[mcp.{name}]`: no agent is called `{unknown}`");
            let hint = did_you_mean(unknown, agents.keys().map(String::as_str));
            text.mistake(&span, message, hint);
        }
        server.finish();
        servers.insert(name, server);
    }
    servers
}

/// The table of rules: each is read by its own crate.
fn read_policy(top: &Section<'_>, value: &Value<'_>) -> PolicyConfig {
    let mut config = PolicyConfig::default();
    for (name, value) in top.table("policy", value).into_iter().flat_map(in_order) {
        match (name.get_ref().as_ref(), value.get_ref().as_array()) {
            ("default", _) => config.default = part(top.text, value).unwrap_or_default(),
            ("rules", Some(rules)) => {
                for (rule, at) in rules.iter().zip(1..) {
                    config.rules.extend(read_rule(top.text, rule, at));
                }
            }
            ("rules", None) => top.fault("policy.rules", Fault::wrong_type(value, "a list")),
            (unknown, _) => {
                let hint = did_you_mean(unknown, ["default", "rules"]);
                Section::new(top.text, Some("policy".to_owned()), Scope::Shared)
                    .unknown(name, unknown, hint);
            }
        }
    }
    config
}

/// The rule at this place in their list, counted from 1, if it can be used.
fn read_rule(text: &Text<'_>, value: &Value<'_>, at: usize) -> Option<RuleConfig> {
    let rule: RuleConfig = part(text, value)?;
    let name = rule.name.clone().or_else(|| Some(format!("rule {at}")));
    let alone = vec![RuleConfig { name, ..rule.clone() }];
    match policy(&PolicyConfig { rules: alone, ..PolicyConfig::default() }) {
        Ok(_) => Some(rule),
        Err(error) => {
            let hint = error.hint().map(str::to_owned);
            text.mistake(&value.span(), format!("`policy`: {error}"), hint);
            None
        }
    }
}

/// A part of the table of rules.
fn part<T: DeserializeOwned>(text: &Text<'_>, value: &Value<'_>) -> Option<T> {
    let part = T::deserialize(value.clone().into_deserializer());
    let wrong = |error: toml::de::Error| {
        let span = error.span().unwrap_or_else(|| value.span());
        text.mistake(&span, format!("`policy`: {}", error.message()), None);
    };
    part.map_err(wrong).ok()
}

/// Reads the catalogue, whose tables are named after the agents.
pub(super) fn read_catalogue(
    path: &Path,
    text: &str,
) -> Result<BTreeMap<String, Profile>, ConfigError> {
    let text = Text::new(path, text);
    let mut agents = BTreeMap::new();
    for (position, (name, value)) in in_order(document(&text)?.get_ref()).into_iter().enumerate() {
        let name = name.get_ref().to_string();
        let section = Section::new(&text, Some(name.clone()), Scope::Catalogue);
        let Some(table) = section.table(&name, value) else { continue };
        let mut profile = Profile::named(&name);
        section.profile(table, &mut profile);
        profile.source = Source::Catalogue;
        profile.position = position;
        profile.is_known_command = true;
        agents.insert(name, profile);
    }
    text.checked(agents)
}

fn document<'t>(text: &Text<'t>) -> Result<Spanned<DeTable<'t>>, ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text.content);
    for error in errors {
        let span = error.span().unwrap_or_default();
        // The message alone: the full text of the error quotes the line, which may hold a secret.
        text.mistake(&span, format!("not valid TOML: {}", error.message()), None);
    }
    text.checked(document)
}

/// The entries as they stand in the file, so that what is said first counts first.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// Lays `[defaults]` over what the catalogue says of an agent.
fn over_defaults(text: &Text<'_>, defaults: Option<&DeTable<'_>>, mut profile: Profile) -> Profile {
    if let Some(defaults) = defaults {
        let section = Section::new(text, Some("defaults".to_owned()), Scope::Shared);
        section.profile(defaults, &mut profile);
    }
    profile
}

/// The default agent must be one that can be used.
fn check_default(text: &Text<'_>, document: &DeTable<'_>, config: &Config) {
    if let (Err(unknown), Some(value)) =
        (config.agent(&config.default_agent), document.get("default_agent"))
    {
        let hint = Some(unknown.hint().to_owned());
        text.mistake(&value.span(), format!("`default_agent`: {unknown}"), hint);
    }
}

/// A key that is unknown at the top may be misspelt, or may belong into one of the tables.
fn top_level_hint(unknown: &str) -> Option<String> {
    let has = |names: Vec<&'static str>| names.contains(&unknown);
    if has(names::<Daemon>()) {
        Some(format!("`{unknown}` belongs in `[daemon]`"))
    } else if has(names::<Hooks>()) {
        Some(format!("`{unknown}` belongs in `[hooks]`"))
    } else if has(names::<Budget>()) {
        Some(format!("`{unknown}` belongs in `[budget]`"))
    } else if has(names::<Retention>()) {
        Some(format!("`{unknown}` belongs in `[retention]`"))
    } else if has(names::<Profile>()) {
        Some(format!("`{unknown}` belongs in `[defaults]` or `[agents.NAME]`"))
    } else {
        let tables = [
            "daemon",
            "hooks",
            "budget",
            "retention",
            "tui",
            "workspace",
            "defaults",
            "agents",
            "policy",
            "mcp",
        ];
        did_you_mean(unknown, names::<Root>().into_iter().chain(tables))
    }
}

fn names<T: Keys>() -> Vec<&'static str> {
    T::keys().iter().map(|key| key.name).collect()
}

/// A table of the file that is being read.
struct Section<'a> {
    text: &'a Text<'a>,
    /// Its header without the brackets; none at the top of the file.
    header: Option<String>,
    scope: Scope,
}

impl<'a> Section<'a> {
    fn new(text: &'a Text<'a>, header: Option<String>, scope: Scope) -> Self {
        Self { text, header, scope }
    }

    /// Takes over all that the table `value`, called `name`, says.
    fn section<T: Keys>(&self, name: &str, value: &Value<'_>, into: &mut T) {
        if let Some(table) = self.table(name, value) {
            Section::new(self.text, Some(name.to_owned()), Scope::Shared).apply(table, into);
        }
    }

    /// Takes over all that `table` says.
    fn apply<T: Keys>(&self, table: &DeTable<'_>, into: &mut T) {
        self.walk(&T::keys(), "", table, into);
    }

    /// Takes over all that `table` says about an agent.
    fn profile(&self, table: &DeTable<'_>, profile: &mut Profile) {
        if let Some(command) = table.get("command") {
            profile.replace_command(command.get_ref().is_array());
        }
        self.apply(table, profile);
    }

    fn walk<T>(&self, keys: &[Key<T>], prefix: &str, table: &DeTable<'_>, into: &mut T) {
        for (name, value) in in_order(table) {
            self.entry(keys, &format!("{prefix}{}", name.get_ref()), name, value, into);
        }
    }

    /// Takes over one entry, whose dotted name within the section is `full`.
    fn entry<T>(
        &self,
        keys: &[Key<T>],
        full: &str,
        name: &Name<'_>,
        value: &Value<'_>,
        into: &mut T,
    ) {
        let prefix = format!("{full}.");
        match keys.iter().find(|key| key.name == full) {
            Some(key) if key.scope > self.scope => self.misplaced(name, full, key.scope),
            Some(key) => {
                if let Err(fault) = (key.set)(into, value) {
                    self.fault(full, fault);
                }
            }
            None if keys.iter().any(|key| key.name.starts_with(&prefix)) => {
                let below = keys.iter().filter(|key| key.name.starts_with(&prefix));
                let scope = below.map(|key| key.scope).min().unwrap_or(self.scope);
                let is_empty = value.get_ref().as_table().is_none_or(DeTable::is_empty);
                if scope > self.scope && is_empty {
                    // With keys in it, each of them is told.
                    self.misplaced(name, full, scope);
                } else if let Some(table) = self.table(full, value) {
                    self.walk(keys, &prefix, table, into);
                }
            }
            None => {
                let here = keys.iter().filter(|key| key.scope <= self.scope);
                self.unknown(name, full, did_you_mean(full, here.map(|key| key.name)));
            }
        }
    }

    /// `value` as the table called `name`.
    fn table<'t, 'i>(&self, name: &str, value: &'t Value<'i>) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.fault(name, Fault::wrong_type(value, "a table"));
        }
        table
    }

    /// A key that may stand in other places only.
    fn misplaced(&self, name: &Name<'_>, full: &str, scope: Scope) {
        let hint = (scope == Scope::Agent)
            .then(|| format!("set `{full}` in the `[agents.NAME]` table it is meant for"));
        let message = format!("`{full}` cannot be set{}", self.place());
        self.text.mistake(&name.span(), message, hint);
    }

    fn unknown(&self, name: &Name<'_>, full: &str, hint: Option<String>) {
        let header = self.header.as_deref().unwrap_or_default();
        if let Some((_, _, instead)) = REMOVED.iter().find(|key| (key.0, key.1) == (header, full)) {
            let message = format!("`{full}`{} was removed", self.place());
            self.text.mistake(&name.span(), message, Some((*instead).to_owned()));
            return;
        }
        self.text.mistake(&name.span(), format!("unknown key `{full}`{}", self.place()), hint);
    }

    fn fault(&self, full: &str, fault: Fault) {
        let message = format!("`{full}`{} {}", self.place(), fault.reason);
        self.text.mistake(&fault.span, message, fault.hint);
        for fault in fault.more {
            self.fault(full, fault);
        }
    }

    /// " in `[agents.claude]`", or nothing at the top of the file.
    fn place(&self) -> String {
        let header = self.header.as_ref();
        header.map_or_else(String::new, |header| format!(" in `[{header}]`"))
    }
}
