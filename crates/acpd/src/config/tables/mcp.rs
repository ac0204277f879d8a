//! `[mcp.NAME]`: MCP servers that agents are to use, with secrets by reference.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::path::PathBuf;

use acpd_api::{McpKind, Tools};
use acpd_policy::Workspaces;
use serde_json::json;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::config::keys::fault::{Fault, all, list, string};
use crate::config::keys::kind::{
    Arguments, Choice, Command, Count, Directory, Flag, Kind, OneOf, SomeOf, inline, quoted,
};
use crate::config::keys::schema::{Schema, VARIABLE, entries_of, text};
use crate::config::keys::{Key, Keys, Scope, keys};

keys! {
    /// An MCP server that agents are to use.
    pub struct McpServer {
        /// The program of a server that talks on its standard input and output. The agent starts it.
        Shared "command" => pub command: Vec<String> as Command = Vec::new();
        /// Arguments to put after `command`.
        Shared "args" => args: Vec<String> as Arguments = Vec::new();
        /// Environment variables for `command`; see [values](#mcp-servers).
        Shared "env" => pub env: Values as Env = Values::default();
        /// The address of a server that runs already.
        Shared "url" => pub url: Option<String> as WebAddress = None;
        /// How to talk with the server at `url`.
        Shared "type" => kind: Web as OneOf<Web> = Web::Http;
        /// HTTP headers for `url`; see [values](#mcp-servers).
        Shared "headers" => pub headers: Values as Headers = Values::default();
        /// Only for these agents. When unset: for all.
        Shared "agents" => pub agents: Vec<String> as AgentNames = Vec::new();
        /// Only for sessions whose directory matches one of these globs, as in the rules of the
        /// policy. When unset: for all.
        Shared "workspace" => pub workspace: Option<Workspaces> as Folders = None;
        /// Whether agents get the server at all.
        Shared "enabled" => pub enabled: bool as Flag = true;
        /// Only in `[mcp.acpd]`, in place of a command: the tools of acpd's own server, `acpctl mcp`.
        Shared "builtin" => pub builtin: Vec<Tools> as SomeOf<Tools> = Vec::new();
        /// Only with `builtin`: how many sessions agents may begin one below the other; the first one, of
        /// a person, does not count.
        Shared "max_depth" => pub max_depth: u32 as Count = 2;
        /// Only with `builtin`: how many sessions the agent of one session may begin, those in the archive
        /// not counted.
        Shared "max_sessions" => pub max_sessions: u32 as Count = 16;
        /// Only with `builtin`: whether an agent may answer what other agents ask in the turns that it has sent to sessions
        /// that it has begun; see [who answers](delegation.md#who-answers).
        Shared "answer" => pub answer: bool as Flag = false;
    }
    beside {
        /// Its name, unique in the configuration.
        pub name: String = String::new();
    }
}

impl McpServer {
    /// A server about which nothing has been said yet.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// How it is talked with.
    pub fn kind(&self) -> McpKind {
        match (&self.url, self.kind) {
            (None, _) => McpKind::Stdio,
            (Some(_), Web::Http) => McpKind::Http,
            (Some(_), Web::Sse) => McpKind::Sse,
        }
    }

    /// Returns whether it is for this agent.
    pub fn is_for(&self, agent: &str) -> bool {
        self.enabled && (self.agents.is_empty() || self.agents.iter().any(|name| name == agent))
    }

    /// The tools of acpd's own server, as that takes them.
    pub fn tools(&self) -> String {
        self.builtin.iter().map(|tools| tools.word()).collect::<Vec<_>>().join(",")
    }

    /// What does not fit together about it, with the way out.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let command = !self.command.is_empty();
        let fresh = Self::default();
        if !self.builtin.is_empty() {
            let own = Self {
                name: self.name.clone(),
                agents: self.agents.clone(),
                workspace: self.workspace.clone(),
                enabled: self.enabled,
                builtin: self.builtin.clone(),
                max_depth: self.max_depth,
                max_sessions: self.max_sessions,
                answer: self.answer,
                ..fresh
            };
            return if self.name != OWN {
                let hint = "the server of acpd is called so: `[mcp.acpd]`";
                Some(("has `builtin`, which is for `[mcp.acpd]`", hint))
            } else if *self != own {
                let hint = "acpd knows how its own server is started";
                Some(("has `builtin` beside what other servers need", hint))
            } else {
                None
            };
        }
        let limits = |of: &Self| (of.max_depth, of.max_sessions, of.answer);
        if limits(self) != limits(&fresh) {
            let hint = "say which tools of acpd it lends: `builtin = [\"delegate\", \"history\"]`";
            Some(("has a limit or `answer`, which need `builtin`", hint))
        } else if command && self.url.is_some() {
            let hint = "`command` is for a server that the agent starts, `url` for one that runs";
            Some(("has both `command` and `url`", hint))
        } else if !command && self.url.is_none() {
            let hint = "say how to start it (`command = [\"program\", …]`) or where it is (`url`)";
            Some(("has neither `command` nor `url`", hint))
        } else if command && (!self.headers.is_empty() || self.kind != Web::Http) {
            let hint =
                "leave it out: a server with a `command` is talked with on its standard input";
            Some(("has `headers` or a `type`, which need a `url`", hint))
        } else if !command && (!self.env.is_empty() || !self.args.is_empty()) {
            Some(("has `env` or `args`, which need a `command`", "use `headers` for secrets"))
        } else {
            None
        }
    }

    /// Makes `command` the whole command.
    pub(crate) fn finish(&mut self) {
        self.command.append(&mut self.args);
    }
}

/// The name of acpd's own server.
pub(crate) const OWN: &str = "acpd";

impl Choice for Tools {
    const WORDS: &'static [(&'static str, Self)] = &Tools::ALL;
}

/// What the name of a server must look like, said as a hint.
pub(crate) const NAME_RULE: &str = "a name is made of letters, digits, `-` and `_`";

/// The same as a pattern.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9_-]+$";

/// Returns whether `name` can be the name of a server: agents make names of tools out of it.
pub(crate) fn valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.chars().all(allowed)
}

/// How a server at an address is talked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Web {
    Http,
    Sse,
}

impl Choice for Web {
    const WORDS: &'static [(&'static str, Self)] = &[("http", Self::Http), ("sse", Self::Sse)];
}

/// Values by the names of variables or headers.
pub type Values = BTreeMap<String, Value>;

/// A text, or where to find it. It is looked up when an agent gets it, and kept nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// The text itself.
    Text(String),
    /// Something to look up, behind a text of its own.
    Reference {
        /// Where it is.
        source: SecretSource,
        /// What to put before it.
        prefix: String,
    },
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In this variable of the daemon's environment.
    Env(String),
    /// In this file.
    File(PathBuf),
}

/// Texts may be secrets, and so may prefixes.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(_) => f.write_str("a text"),
            Value::Reference { source, .. } => source.fmt(f),
        }
    }
}

const VALUE: &str = "a string, `{ env = \"NAME\" }` or `{ file = \"~/path\" }`";

/// A value of the variable or header `name`. What is written never gets into a message.
fn value(name: &str, item: &Spanned<DeValue<'_>>, may_prefix: bool) -> Result<Value, Fault> {
    let of = |fault: Fault| Fault {
        reason: format!("{} (the value of `{name}`)", fault.reason),
        ..fault
    };
    let wrong = |reason: &str| of(Fault::new(item, reason.to_owned()));
    let table = match item.get_ref() {
        DeValue::String(text) => return Ok(Value::Text(text.to_string())),
        DeValue::Table(table) => table,
        _ => return Err(of(Fault::wrong_type(item, VALUE))),
    };
    let (mut source, mut prefix) = (None, String::new());
    for (key, item) in table {
        let found = match key.get_ref().as_ref() {
            "env" => match string(item, "the name of a variable").map_err(of)? {
                name if name.is_empty() || name.contains(['=', '\0']) => {
                    return Err(of(Fault::new(item, "names no variable")));
                }
                name => SecretSource::Env(name.to_owned()),
            },
            "file" => match Directory::read(item).map_err(of)? {
                Some(path) => SecretSource::File(path),
                None => return Err(of(Fault::new(item, "names no file"))),
            },
            "prefix" if may_prefix => {
                string(item, "a string").map_err(of)?.clone_into(&mut prefix);
                continue;
            }
            other => {
                let known =
                    if may_prefix { "`env`, `file` and `prefix`" } else { "`env` and `file`" };
                let reason = format!("has an unknown key `{other}`");
                return Err(of(Fault::new(item, reason)).hint(format!("the keys are {known}")));
            }
        };
        if source.replace(found).is_some() {
            return Err(wrong("names more than one source"));
        }
    }
    match source {
        Some(source) => Ok(Value::Reference { source, prefix }),
        None => Err(wrong(&format!("must be {VALUE}"))),
    }
}

fn values(
    item: &Spanned<DeValue<'_>>,
    wanted: &str,
    is_name: impl Fn(&str) -> bool,
    may_prefix: bool,
) -> Result<Values, Fault> {
    let DeValue::Table(table) = item.get_ref() else {
        return Err(Fault::wrong_type(item, wanted));
    };
    let read = |(name, item): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let name = name.get_ref().as_ref();
        if !is_name(name) {
            return Err(Fault::new(item, format!("holds {name:?}, which cannot be a name there")));
        }
        Ok((name.to_owned(), value(name, item, may_prefix)?))
    };
    all(table.iter().map(read))
}

/// Values under names of this form.
fn values_schema(name: &str, may_prefix: bool) -> Schema {
    let mut one = json!({
        "type": "object",
        "properties": {"env": text(VARIABLE), "file": text("^(~/|/)")},
        "additionalProperties": false,
        "oneOf": [{"required": ["env"]}, {"required": ["file"]}]
    });
    if may_prefix {
        one["properties"]["prefix"] = json!({"type": "string"});
    }
    entries_of(name, &json!({"anyOf": [{"type": "string"}, one]}))
}

fn show(values: &Values) -> String {
    let reference = |source: &SecretSource, prefix: &str| {
        let (kind, place) = match source {
            SecretSource::Env(name) => ("env", name.clone()),
            SecretSource::File(path) => ("file", path.to_string_lossy().into_owned()),
        };
        let prefix =
            Some(prefix).filter(|prefix| !prefix.is_empty()).map(|text| ("prefix", quoted(text)));
        inline(once((kind, quoted(&place))).chain(prefix))
    };
    inline(values.iter().map(|(name, value)| match value {
        Value::Text(text) => (name.as_str(), quoted(text)),
        Value::Reference { source, prefix } => (name.as_str(), reference(source, prefix)),
    }))
}

/// Environment variables.
struct Env;

impl Kind for Env {
    type Value = Values;

    fn describe() -> String {
        "a table of values".to_owned()
    }

    fn schema() -> Schema {
        values_schema(VARIABLE, false)
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Values, Fault> {
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        values(value, &Self::describe(), is_name, false)
    }

    fn show(value: &Values) -> String {
        show(value)
    }
}

/// HTTP headers.
struct Headers;

impl Kind for Headers {
    type Value = Values;

    fn describe() -> String {
        "a table of values".to_owned()
    }

    fn schema() -> Schema {
        values_schema("^[!-9;-~]+$", true)
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Values, Fault> {
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && c != ':');
        values(value, &Self::describe(), is_name, true)
    }

    fn show(value: &Values) -> String {
        show(value)
    }
}

/// An address of the web.
struct WebAddress;

impl Kind for WebAddress {
    type Value = Option<String>;

    fn describe() -> String {
        "an address like \"https://example.com/mcp\"".to_owned()
    }

    fn schema() -> Schema {
        text("^https?://[!-~]+$")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<String>, Fault> {
        let text = string(value, &Self::describe())?;
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_one = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic());
        if rest.is_some_and(is_one) {
            Ok(Some(text.to_owned()))
        } else {
            // It may hold a password, so it is not repeated.
            Err(Fault::new(value, format!("must be {}", Self::describe())))
        }
    }

    fn show(value: &Option<String>) -> String {
        value.as_deref().map_or_else(String::new, quoted)
    }
}

/// Names of agents; whether there are such agents is known when all of the file is read.
struct AgentNames;

impl Kind for AgentNames {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of agents".to_owned()
    }

    fn schema() -> Schema {
        json!({"type": "array", "items": {"type": "string"}, "minItems": 1})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        let names = list(value, &Self::describe(), |item| {
            string(item, &Self::describe()).map(str::to_owned)
        })?;
        if names.is_empty() {
            let hint = "leave it out for all agents, or set `enabled = false` for none";
            return Err(Fault::new(value, "is an empty list").hint(hint));
        }
        Ok(names)
    }

    fn show(value: &Vec<String>) -> String {
        if value.is_empty() { String::new() } else { Arguments::show(value) }
    }
}

/// Globs of workspaces.
struct Folders;

impl Kind for Folders {
    type Value = Option<Workspaces>;

    fn describe() -> String {
        "a glob of directories, or a list of them".to_owned()
    }

    fn schema() -> Schema {
        let glob = json!({"type": "string"});
        json!({"anyOf": [glob, {"type": "array", "items": glob, "minItems": 1}]})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<Workspaces>, Fault> {
        let globs = match value.get_ref() {
            DeValue::String(glob) => vec![glob.to_string()],
            _ => list(value, &Self::describe(), |item| {
                string(item, &Self::describe()).map(str::to_owned)
            })?,
        };
        if globs.is_empty() {
            let hint = "leave it out for all directories";
            return Err(Fault::new(value, "is an empty list").hint(hint));
        }
        let home = std::env::var("HOME").ok();
        let compiled = Workspaces::new(&globs, home.as_deref()).map_err(|bad| {
            let fault = Fault::new(value, format!("cannot be used: {bad}"));
            match bad.hint() {
                Some(hint) => fault.hint(hint),
                None => fault,
            }
        });
        compiled.map(Some)
    }

    fn show(value: &Option<Workspaces>) -> String {
        let globs = value.as_ref().map(|globs| Arguments::show(&globs.texts().collect()));
        globs.unwrap_or_default()
    }
}
