//! Reads the text of a configuration file into values, and names the place of whatever is wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use acpd_policy::PolicyConfig;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::config::error::{ConfigError, Text, did_you_mean};
use crate::config::keys::kind::{self, Fault};
use crate::config::keys::{Key, Keys, Scope};
use crate::config::resolved::{Config, DEMO_AGENT, policy};
use crate::config::tables::mcp::{self, McpServer};
use crate::config::tables::profile::{
    Budget, Daemon, Hooks, Profile, Root, Source, Transport, Tui, Workspace,
};

type Name<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

/// Reads the user's file over the agents of the catalogue.
pub(super) fn read(
    path: &Path,
    text: &str,
    catalogue: BTreeMap<String, Profile>,
) -> Result<Config, ConfigError> {
    let text = Text { path, text };
    let document = document(text)?;
    let top = Section::new(text, None, Scope::Shared);
    let mut root = Root::default();
    let mut daemon = Daemon::default();
    let mut hooks = Hooks::default();
    let mut budget = Budget::default();
    let mut tui = Tui::default();
    let mut workspaces = Vec::new();
    let (mut defaults, mut tables, mut servers) = (None, None, None);
    let mut policy = PolicyConfig::default();
    for (name, value) in in_order(document.get_ref()) {
        match name.get_ref().as_ref() {
            "daemon" => {
                let section = Section::new(text, Some("daemon".to_owned()), Scope::Shared);
                section.apply(top.table("daemon", value)?, &mut daemon)?;
            }
            "hooks" => {
                let section = Section::new(text, Some("hooks".to_owned()), Scope::Shared);
                section.apply(top.table("hooks", value)?, &mut hooks)?;
            }
            "budget" => {
                let section = Section::new(text, Some("budget".to_owned()), Scope::Shared);
                section.apply(top.table("budget", value)?, &mut budget)?;
            }
            "tui" => {
                let section = Section::new(text, Some("tui".to_owned()), Scope::Shared);
                section.apply(top.table("tui", value)?, &mut tui)?;
            }
            "defaults" => defaults = Some(top.table("defaults", value)?),
            "agents" => tables = Some(top.table("agents", value)?),
            "workspace" => workspaces = read_workspaces(text, &top, value)?,
            "mcp" => servers = Some(top.table("mcp", value)?),
            "policy" => policy = read_policy(text, name)?,
            known if Root::keys().iter().any(|key| key.name == known) => {
                top.entry(&Root::keys(), known, name, value, &mut root)?;
            }
            unknown => return Err(top.unknown(name, unknown, top_level_hint(unknown))),
        }
    }

    let fresh = |profile: Profile| over_defaults(text, defaults, profile);
    let mut agents = BTreeMap::new();
    for (name, profile) in catalogue {
        agents.insert(name, fresh(profile)?);
    }
    let mut configured = Vec::new();
    for (key, value) in tables.into_iter().flat_map(in_order) {
        let name = key.get_ref().to_string();
        if !kind::valid_name(&name) {
            return Err(text.error(
                &key.span(),
                &format!("`{name}` is not a name for an agent"),
                Some(kind::NAME_RULE.to_owned()),
            ));
        }
        let (mut profile, source) = match agents.remove(&name) {
            Some(known) => (known, Source::Both),
            None => (fresh(Profile::named(&name))?, Source::User),
        };
        let header = format!("agents.{name}");
        let table = top.table(&header, value)?;
        Section::new(text, Some(header), Scope::Agent).profile(table, &mut profile)?;
        let starts_nothing = matches!(profile.transport(), Transport::TcpConnect(_));
        if starts_nothing && table.get("command").is_none() {
            profile.drop_known_command();
        }
        if let Some((what, hint)) = profile.contradiction(daemon.host) {
            let message = format!("agent `{name}` {what}");
            return Err(text.error(&key.span(), &message, Some(hint.to_owned())));
        }
        if profile.command.is_empty() && !starts_nothing {
            let hint = did_you_mean(&name, agents.keys().map(String::as_str))
                .unwrap_or_else(|| format!("say how to start it: `command = [\"{name}\", …]`"));
            let message = format!("agent `{name}` has no `command`");
            return Err(text.error(&key.span(), &message, Some(hint)));
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

    let mcp = match servers {
        Some(tables) => read_servers(text, &top, tables, &agents)?,
        None => BTreeMap::new(),
    };
    let default_agent = root.default_agent.or_else(|| configured.first().cloned());
    let default_agent = default_agent.unwrap_or_else(|| DEMO_AGENT.to_owned());
    if let Some((span, unknown)) = workspaces.iter().find_map(|(span, workspace)| {
        let agent = workspace.agent.as_ref()?;
        (!agents.contains_key(agent)).then_some((span, agent))
    }) {
        let message = format!("`agent` in `[[workspace]]`: no agent is called `{unknown}`");
        let hint = did_you_mean(unknown, agents.keys().map(String::as_str));
        return Err(text.error(span, &message, hint));
    }
    let workspaces = workspaces.into_iter().map(|(_, workspace)| workspace).collect();
    let config =
        Config { daemon, hooks, budget, tui, workspaces, policy, default_agent, agents, mcp };
    check_default(text, document.get_ref(), &config)?;
    Ok(config)
}

/// Directories with settings of their own, with their places.
fn read_workspaces(
    text: Text<'_>,
    top: &Section<'_>,
    value: &Value<'_>,
) -> Result<Vec<(Range<usize>, Workspace)>, ConfigError> {
    let tables = kind::list(value, "a list of tables: `[[workspace]]`", |item| {
        item.get_ref().as_table().map(|_| ()).ok_or_else(|| Fault::wrong_type(item, "a table"))
    });
    tables.map_err(|fault| top.fault("workspace", fault))?;
    let mut workspaces = Vec::new();
    for item in value.get_ref().as_array().into_iter().flatten() {
        let table = top.table("workspace", item)?;
        let mut workspace = Workspace::default();
        let section = Section::new(text, Some("[workspace]".to_owned()), Scope::Shared);
        section.apply(table, &mut workspace)?;
        if table.get("path").is_none() {
            let hint = Some("say which directory it is: `path = \"~/src/api\"`".to_owned());
            return Err(text.error(&item.span(), "`[[workspace]]` has no `path`", hint));
        }
        workspaces.push((item.span(), workspace));
    }
    Ok(workspaces)
}

/// The tables of MCP servers, which may be for some of the `agents` only.
fn read_servers(
    text: Text<'_>,
    top: &Section<'_>,
    tables: &DeTable<'_>,
    agents: &BTreeMap<String, Profile>,
) -> Result<BTreeMap<String, McpServer>, ConfigError> {
    let mut servers = BTreeMap::new();
    for (key, value) in in_order(tables) {
        let name = key.get_ref().to_string();
        if !mcp::valid_name(&name) {
            let message = format!("`{name}` is not a name for an MCP server");
            return Err(text.error(&key.span(), &message, Some(mcp::NAME_RULE.to_owned())));
        }
        let header = format!("mcp.{name}");
        let table = top.table(&header, value)?;
        let mut server = McpServer::named(&name);
        Section::new(text, Some(header), Scope::Shared).apply(table, &mut server)?;
        if let Some((what, hint)) = server.contradiction() {
            let message = format!("MCP server `{name}` {what}");
            return Err(text.error(&key.span(), &message, Some(hint.to_owned())));
        }
        if let Some(unknown) = server.agents.iter().find(|agent| !agents.contains_key(*agent)) {
            let span = table.get("agents").map_or_else(|| key.span(), Spanned::span);
            let message = format!("`agents` in `[mcp.{name}]`: no agent is called `{unknown}`");
            let hint = did_you_mean(unknown, agents.keys().map(String::as_str));
            return Err(text.error(&span, &message, hint));
        }
        server.finish();
        servers.insert(name, server);
    }
    Ok(servers)
}

/// The table of rules: it is read as a whole, by its own crate.
fn read_policy(text: Text<'_>, name: &Name<'_>) -> Result<PolicyConfig, ConfigError> {
    #[derive(serde::Deserialize)]
    struct Document {
        policy: PolicyConfig,
    }
    let document: Document = toml::from_str(text.text).map_err(|error| {
        let span = error.span().unwrap_or_else(|| name.span());
        text.error(&span, &format!("`policy`: {}", error.message()), None)
    })?;
    policy(&document.policy).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        text.error(&name.span(), &format!("`policy`: {error}"), hint)
    })?;
    Ok(document.policy)
}

/// Reads the catalogue, whose tables are named after the agents.
pub(super) fn read_catalogue(
    path: &Path,
    text: &str,
) -> Result<BTreeMap<String, Profile>, ConfigError> {
    let text = Text { path, text };
    let mut agents = BTreeMap::new();
    for (name, value) in in_order(document(text)?.get_ref()) {
        let name = name.get_ref().to_string();
        let section = Section::new(text, Some(name.clone()), Scope::Catalogue);
        let mut profile = Profile::named(&name);
        section.profile(section.table(&name, value)?, &mut profile)?;
        profile.source = Source::Catalogue;
        agents.insert(name, profile);
    }
    Ok(agents)
}

fn document(text: Text<'_>) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    DeTable::parse(text.text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        // The message alone: the full text of the error quotes the line, which may hold a secret.
        text.error(&span, &format!("not valid TOML: {}", error.message()), None)
    })
}

/// The entries as they stand in the file, so that the first mistake is the one reported.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// Lays `[defaults]` over what the catalogue says of an agent.
fn over_defaults(
    text: Text<'_>,
    defaults: Option<&DeTable<'_>>,
    mut profile: Profile,
) -> Result<Profile, ConfigError> {
    if let Some(defaults) = defaults {
        let section = Section::new(text, Some("defaults".to_owned()), Scope::Shared);
        section.profile(defaults, &mut profile)?;
    }
    Ok(profile)
}

/// The default agent must be one that can be used.
fn check_default(
    text: Text<'_>,
    document: &DeTable<'_>,
    config: &Config,
) -> Result<(), ConfigError> {
    let Err(unknown) = config.agent(&config.default_agent) else {
        return Ok(());
    };
    match document.get("default_agent") {
        Some(value) => Err(text.error(
            &value.span(),
            &format!("`default_agent`: {unknown}"),
            Some(unknown.hint().to_owned()),
        )),
        None => Ok(()),
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
    } else if has(names::<Profile>()) {
        Some(format!("`{unknown}` belongs in `[defaults]` or `[agents.NAME]`"))
    } else {
        let tables = [
            "daemon",
            "hooks",
            "budget",
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
    text: Text<'a>,
    /// Its header without the brackets; none at the top of the file.
    header: Option<String>,
    scope: Scope,
}

impl<'a> Section<'a> {
    fn new(text: Text<'a>, header: Option<String>, scope: Scope) -> Self {
        Self { text, header, scope }
    }

    /// Takes over all that `table` says.
    fn apply<T: Keys>(&self, table: &DeTable<'_>, into: &mut T) -> Result<(), ConfigError> {
        self.walk(&T::keys(), "", table, into)
    }

    /// Takes over all that `table` says about an agent.
    fn profile(&self, table: &DeTable<'_>, profile: &mut Profile) -> Result<(), ConfigError> {
        if let Some(command) = table.get("command") {
            profile.replace_command(command.get_ref().is_array());
        }
        self.apply(table, profile)
    }

    fn walk<T>(
        &self,
        keys: &[Key<T>],
        prefix: &str,
        table: &DeTable<'_>,
        into: &mut T,
    ) -> Result<(), ConfigError> {
        for (name, value) in in_order(table) {
            self.entry(keys, &format!("{prefix}{}", name.get_ref()), name, value, into)?;
        }
        Ok(())
    }

    /// Takes over one entry, whose dotted name within the section is `full`.
    fn entry<T>(
        &self,
        keys: &[Key<T>],
        full: &str,
        name: &Name<'_>,
        value: &Value<'_>,
        into: &mut T,
    ) -> Result<(), ConfigError> {
        let prefix = format!("{full}.");
        match keys.iter().find(|key| key.name == full) {
            Some(key) if key.scope > self.scope => {
                let hint = (key.scope == Scope::Agent)
                    .then(|| format!("set `{full}` in the `[agents.NAME]` table it is meant for"));
                let message = format!("`{full}` cannot be set{}", self.place());
                Err(self.text.error(&name.span(), &message, hint))
            }
            Some(key) => (key.set)(into, value).map_err(|fault| self.fault(full, fault)),
            None if keys.iter().any(|key| key.name.starts_with(&prefix)) => {
                self.walk(keys, &prefix, self.table(full, value)?, into)
            }
            None => {
                let here = keys.iter().filter(|key| key.scope <= self.scope);
                let hint = did_you_mean(full, here.map(|key| key.name));
                Err(self.unknown(name, full, hint))
            }
        }
    }

    /// `value` as the table called `name`.
    fn table<'t, 'i>(
        &self,
        name: &str,
        value: &'t Value<'i>,
    ) -> Result<&'t DeTable<'i>, ConfigError> {
        value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.fault(name, Fault::wrong_type(value, "a table")))
    }

    fn unknown(&self, name: &Name<'_>, full: &str, hint: Option<String>) -> ConfigError {
        let message = format!("unknown key `{full}`{}", self.place());
        self.text.error(&name.span(), &message, hint)
    }

    fn fault(&self, full: &str, fault: Fault) -> ConfigError {
        let message = format!("`{full}`{} {}", self.place(), fault.reason);
        self.text.error(&fault.span, &message, fault.hint)
    }

    /// " in `[agents.claude]`", or nothing at the top of the file.
    fn place(&self) -> String {
        let header = self.header.as_ref();
        header.map_or_else(String::new, |header| format!(" in `[{header}]`"))
    }
}
