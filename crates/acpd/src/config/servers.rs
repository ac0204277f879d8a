//! `[mcp.NAME]`: MCP servers that agents are to use. Their defaults are in `defaults.toml`.

use acpd_api::{McpKind, Tools};
use acpd_policy::Workspaces;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::format::{
    AgentNames, As, Command, Each, Folders, HeaderName, OneOf, Table, VariableName, WebAddress,
    Whole, Word,
};
use crate::config::secrets::{ValueFormat, Values};

/// An MCP server that agents are to use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program of a server that talks on its standard input and output. The agent starts it.
    #[serde(with = "As::<Command>")]
    pub command: Vec<String>,
    /// Arguments to put after `command`.
    #[serde(with = "As::<Each<Word>>")]
    args: Vec<String>,
    /// Environment variables for `command`; see [values](#mcp-servers).
    #[serde(with = "As::<Table<VariableName, ValueFormat>>")]
    pub env: Values,
    /// The address of a server that runs already.
    #[serde(with = "As::<WebAddress>")]
    pub url: Option<String>,
    /// How to talk with the server at `url`.
    #[serde(with = "As::<OneOf<WebKind>>")]
    r#type: WebKind,
    /// HTTP headers for `url`; see [values](#mcp-servers).
    #[serde(with = "As::<Table<HeaderName, ValueFormat>>")]
    pub headers: Values,
    /// Only for these agents. When unset: for all.
    #[serde(with = "As::<AgentNames>")]
    pub agents: Vec<String>,
    /// Only for sessions whose directory matches one of these globs, as in the rules of the
    /// policy. When unset: for all.
    #[serde(with = "As::<Folders>")]
    pub workspace: Option<Workspaces>,
    /// Whether agents get the server at all.
    pub enabled: bool,
    /// Only in `[mcp.acpd]`, in place of a command: the tools of acpd's own server, `acpctl mcp`.
    #[serde(with = "As::<Each<OneOf<Tools>>>")]
    pub builtin: Vec<Tools>,
    /// Only with `builtin`: how many sessions agents may begin one below the other; the first one, of
    /// a person, does not count.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub max_depth: u32,
    /// Only with `builtin`: how many sessions the agent of one session may begin, those in the archive
    /// not counted.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub max_sessions: u32,
    /// Only with `builtin`: whether an agent may answer what other agents ask in the turns that it has sent to sessions
    /// that it has begun; see [who answers](delegation.md#who-answers).
    pub answer: bool,
    #[serde(skip)]
    pub name: String,
}

impl McpServer {
    pub fn kind(&self) -> McpKind {
        match (&self.url, self.r#type) {
            (None, _) => McpKind::Stdio,
            (Some(_), WebKind::Http) => McpKind::Http,
            (Some(_), WebKind::Sse) => McpKind::Sse,
        }
    }

    pub fn is_for(&self, agent: &str) -> bool {
        self.enabled && (self.agents.is_empty() || self.agents.iter().any(|name| name == agent))
    }

    /// Returns the tools of acpd's own server as its argument.
    pub fn tools(&self) -> String {
        let word =
            |tools| Tools::ALL.into_iter().find(|(_, known)| known == tools).map(|(word, _)| word);
        self.builtin.iter().filter_map(word).collect::<Vec<_>>().join(",")
    }
}

/// The name of acpd's own server.
const OWN: &str = "acpd";

/// Returns keys in the table of a server that do not fit together, and a hint. `has` returns
/// whether a key differs from its default.
pub(super) fn contradiction(
    name: &str,
    has: impl Fn(&str) -> bool,
) -> Option<(&'static str, &'static str)> {
    let any = |keys: &[&str]| keys.iter().any(|key| has(key));
    let (command, url) = (any(&["command"]), any(&["url"]));
    if any(&["builtin"]) {
        if name != OWN {
            let hint = "the server of acpd is called so: `[mcp.acpd]`";
            Some(("has `builtin`, which is for `[mcp.acpd]`", hint))
        } else if any(&["command", "args", "env", "url", "type", "headers"]) {
            let hint = "acpd knows how its own server is started";
            Some(("has `builtin` beside what other servers need", hint))
        } else {
            None
        }
    } else if any(&["max_depth", "max_sessions", "answer"]) {
        let hint = "say which tools of acpd it lends: `builtin = [\"delegate\", \"history\"]`";
        Some(("has a limit or `answer`, which need `builtin`", hint))
    } else if command && url {
        let hint = "`command` is for a server that the agent starts, `url` for one that runs";
        Some(("has both `command` and `url`", hint))
    } else if !command && !url {
        let hint = "say how to start it (`command = [\"program\", …]`) or where it is (`url`)";
        Some(("has neither `command` nor `url`", hint))
    } else if command && any(&["headers", "type"]) {
        let hint = "leave it out: a server with a `command` is talked with on its standard input";
        Some(("has `headers` or a `type`, which need a `url`", hint))
    } else if url && any(&["env", "args"]) {
        Some(("has `env` or `args`, which need a `command`", "use `headers` for secrets"))
    } else {
        None
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WebKind {
    #[default]
    Http,
    Sse,
}
