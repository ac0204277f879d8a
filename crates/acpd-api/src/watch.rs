//! Rows for a client that watches the daemon: all of them once, then changed ones.

use serde::{Deserialize, Serialize};

use crate::{
    AgentInfo, HostState, InteractionInfo, SessionInfo, SessionRef, SessionRowKey, Untrusted,
};

/// Result of `_acpd/watch`: all rows at that moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Every session that is not archived, the most recently used first, as in
    /// `_acpd/session/list`.
    pub sessions: Vec<SessionInfo>,
    /// Every agent of `_acpd/agent/list`, without memory and processes.
    pub agents: Vec<AgentInfo>,
    /// Every open question, the oldest first, as in `_acpd/interaction/list`.
    pub interactions: Vec<InteractionInfo>,
    /// The machines of a client that joins several; never from a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostState>,
}

/// Rows that have changed since the last notification.
///
/// A row is whole, and replaces the one with the same key. States between two notifications are not
/// sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Changed {
    /// New and changed sessions. The key is agent and id together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionInfo>,
    /// New and changed agents, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentInfo>,
    /// New and changed questions, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<InteractionInfo>,
    /// Keys of removed rows.
    #[serde(skip_serializing_if = "Removed::is_empty")]
    pub removed: Removed,
    /// All machines, if the state of one has changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostState>,
}

/// Keys of removed rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Removed {
    /// Sessions that were deleted or archived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionRowKey>,
    /// Names of removed agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Untrusted>,
    /// Ids of questions that were answered or withdrawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Untrusted>,
}

impl SessionInfo {
    /// The key of its row.
    pub fn row_key(&self) -> SessionRowKey {
        SessionRowKey { agent: self.agent.clone(), session_id: self.session_id.clone() }
    }

    /// Returns the name, or the id of a session without one.
    pub fn handle(&self) -> &Untrusted {
        self.name.as_ref().unwrap_or(&self.session_id)
    }

    /// A reference to exactly this session.
    pub fn exactly(&self) -> SessionRef {
        SessionRef::to(self.agent.raw(), self.session_id.raw())
    }
}

impl SessionRowKey {
    /// A reference to exactly this session.
    pub fn exactly(&self) -> SessionRef {
        SessionRef::to(self.agent.raw(), self.session_id.raw())
    }

    /// Returns whether this is the key of a session's row.
    pub fn is_of(&self, row: &SessionInfo) -> bool {
        self.agent == row.agent && self.session_id == row.session_id
    }
}

impl Removed {
    /// Returns whether no row was removed.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.agents.is_empty() && self.interactions.is_empty()
    }
}

impl Watched {
    /// Applies changes to the rows. The order stays as in the snapshot; new rows come last.
    pub fn apply(&mut self, changed: Changed) {
        let Changed { sessions, agents, interactions, removed, hosts } = changed;
        if !hosts.is_empty() {
            self.hosts = hosts;
        }
        self.sessions.retain(|row| !removed.sessions.iter().any(|key| key.is_of(row)));
        self.agents.retain(|row| !removed.agents.contains(&row.name));
        self.interactions.retain(|row| !removed.interactions.contains(&row.id));
        put(&mut self.sessions, sessions, |a, b| {
            a.agent == b.agent && a.session_id == b.session_id
        });
        put(&mut self.agents, agents, |a, b| a.name == b.name);
        put(&mut self.interactions, interactions, |a, b| a.id == b.id);
    }

    /// Returns the changes that make `old` into these rows.
    pub fn changes_from(&self, old: &Watched) -> Changed {
        let removed = Removed {
            sessions: lost(&old.sessions, &self.sessions, SessionInfo::row_key),
            agents: lost(&old.agents, &self.agents, |row| row.name.clone()),
            interactions: lost(&old.interactions, &self.interactions, |row| row.id.clone()),
        };
        Changed {
            sessions: new(&old.sessions, &self.sessions),
            agents: new(&old.agents, &self.agents),
            interactions: new(&old.interactions, &self.interactions),
            removed,
            hosts: Vec::new(),
        }
    }
}

fn new<T: Clone + PartialEq>(old: &[T], now: &[T]) -> Vec<T> {
    now.iter().filter(|row| !old.contains(row)).cloned().collect()
}

fn lost<T, K: PartialEq>(old: &[T], now: &[T], key: impl Fn(&T) -> K) -> Vec<K> {
    let kept: Vec<K> = now.iter().map(&key).collect();
    old.iter().map(key).filter(|key| !kept.contains(key)).collect()
}

fn put<T>(rows: &mut Vec<T>, new: Vec<T>, is_same: impl Fn(&T, &T) -> bool) {
    for row in new {
        match rows.iter_mut().find(|old| is_same(old, &row)) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
}
