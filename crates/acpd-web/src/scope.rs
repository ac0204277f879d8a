//! The permissions of a token.
//!
//! Architecture invariant: a method that is not in this table never reaches the daemon. The
//! daemon's start and end, its agents' processes, logins, the policy and deletions are for the
//! terminal.

use std::fmt;
use std::str::FromStr;

use acpd_api::method;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// See everything, change nothing.
    Watch,
    /// Begin sessions, send and cancel prompts.
    Prompt,
    /// Decide: answer agents, and set what they ask about.
    Answer,
}

impl Scope {
    const ALL: [Scope; 3] = [Scope::Watch, Scope::Prompt, Scope::Answer];

    /// The scope that a method needs; `None` if clients of the server may not call it.
    pub(crate) fn of_method(name: &str) -> Option<Scope> {
        METHODS.iter().find(|(known, _)| *known == name).map(|(_, scope)| *scope)
    }
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Scope, Self::Err> {
        let known = Scope::ALL.into_iter().find(|scope| scope.to_string() == word);
        known.ok_or("the scopes are: watch, prompt, answer")
    }
}

/// The permissions of one token. All have `Watch`, because the others need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Scope>", into = "Vec<Scope>")]
pub struct Scopes {
    prompt: bool,
    answer: bool,
}

impl Scopes {
    pub(crate) fn has(self, scope: Scope) -> bool {
        match scope {
            Scope::Watch => true,
            Scope::Prompt => self.prompt,
            Scope::Answer => self.answer,
        }
    }
}

impl Default for Scopes {
    fn default() -> Scopes {
        Scopes { prompt: true, answer: true }
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Scopes {
        Scopes { prompt: scopes.contains(&Scope::Prompt), answer: scopes.contains(&Scope::Answer) }
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Vec<Scope> {
        Scope::ALL.into_iter().filter(|scope| scopes.has(*scope)).collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = Vec::from(*self).iter().map(Scope::to_string).collect();
        f.write_str(&words.join(","))
    }
}

use Scope::{Answer, Prompt, Watch};

const METHODS: &[(&str, Scope)] = &[
    ("initialize", Watch),
    ("auth/status", Watch),
    ("session/list", Watch),
    ("session/load", Watch),
    ("session/resume", Watch),
    ("session/status", Watch),
    ("session/options", Watch),
    // Notifications that name requests of the same connection.
    ("$/cancel_request", Watch),
    ("$/cancelRequest", Watch),
    (method::STATUS, Watch),
    (method::WATCH, Watch),
    (method::PING, Watch),
    (method::AGENT_LIST, Watch),
    (method::AGENT_SHOW, Watch),
    (method::SESSION_LIST, Watch),
    (method::SESSION_SHOW, Watch),
    (method::SESSION_LOG, Watch),
    (method::SESSION_SEARCH, Watch),
    (method::SESSION_ATTACH, Watch),
    (method::SESSION_DETACH, Watch),
    (method::SESSION_QUEUE, Watch),
    (method::USAGE, Watch),
    (method::METRICS, Watch),
    (method::INTERACTION_LIST, Watch),
    // Resuming a connection.
    (method::CLIENT_ANSWERED, Watch),
    (method::CLIENT_LEAVE, Watch),
    ("session/new", Prompt),
    ("session/fork", Prompt),
    ("session/prompt", Prompt),
    ("session/cancel", Prompt),
    ("session/close", Prompt),
    ("session/archive", Prompt),
    ("session/unarchive", Prompt),
    ("session/set_title", Prompt),
    ("_session/steering", Prompt),
    ("session/inject", Prompt),
    (method::SESSION_RENAME, Prompt),
    (method::SESSION_TITLE, Prompt),
    (method::SESSION_CANCEL, Prompt),
    (method::SESSION_QUEUE_EDIT, Prompt),
    (method::SESSION_QUEUE_MOVE, Prompt),
    (method::SESSION_QUEUE_REMOVE, Prompt),
    (method::SESSION_CLOSE, Prompt),
    (method::SESSION_ARCHIVE, Prompt),
    (method::SESSION_UNARCHIVE, Prompt),
    (method::INTERACTION_ANSWER, Answer),
    // A mode decides what a user is asked, and only the agent knows which mode asks less. An option
    // may be a mode.
    ("session/set_mode", Answer),
    ("session/set_config_option", Answer),
    ("session/set_model", Prompt),
    // The answer of a server in the client counts as an answer.
    ("mcp/message", Answer),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use acpd_api::under_agent::ACP;

    use super::*;

    #[test]
    fn of_every_method_it_is_decided_whether_it_passes() {
        let named = METHODS.iter().map(|(name, _)| *name);
        let all: BTreeSet<&str> =
            ACP.iter().chain(method::METHODS).map(|(name, _)| *name).collect();
        assert_eq!(named.clone().count(), named.clone().collect::<BTreeSet<_>>().len());
        assert_eq!(named.clone().filter(|name| !all.contains(name)).collect::<Vec<_>>(), [""; 0]);
        let refused: Vec<&str> =
            all.into_iter().filter(|name| Scope::of_method(name).is_none()).collect();
        assert_eq!(
            refused,
            [
                "_acpd/agent/restart",
                "_acpd/agent/start",
                "_acpd/agent/stop",
                "_acpd/auth/done",
                "_acpd/daemon/log_level",
                "_acpd/daemon/restart",
                "_acpd/daemon/stop",
                "_acpd/gc",
                "_acpd/mcp/call",
                "_acpd/mcp/list",
                "_acpd/policy/forget",
                "_acpd/policy/list",
                "_acpd/policy/test",
                "_acpd/session/move",
                "_acpd/session/remove",
                "_acpd/session/reseed",
                "_acpd/session/undo",
                "_acpd/trace",
                "authenticate",
                "logout",
                "providers/disable",
                "providers/list",
                "providers/set",
                "session/delete",
            ]
        );
    }
}
