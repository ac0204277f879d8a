//! Watchers of all rows, with the version that each has.
//!
//! ```text
//!  something changes ─▶ stale ── at most every 50 ms ─▶ row of now, with a version if it is another one
//!                                                          │ rows newer than what the watcher has
//!                                                          ▼
//!                                    watcher: free ── told ─▶ busy ── line written ─▶ free
//! ```
//!
//! Architecture invariant: nothing is kept while no client watches. A watcher that reads slowly costs a
//! number and one line on its way, however much changes meanwhile: it gets the rows of the moment in which it
//! can take them.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::build;
use acpd_api::{
    AgentInfo, Changed, InteractionInfo, Removed, SessionInfo, SessionRowKey, Untrusted, Watched,
    method,
};
use bytes::Bytes;

use crate::ids::{ClientId, InteractionId, SessionKey, Time};

/// Milliseconds between two lines to a watcher.
const PAUSE: u64 = 50;

/// The watchers, and the rows as they were told last.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    watchers: BTreeMap<ClientId, Watcher>,
    /// Grows with each look at the rows.
    version: u64,
    /// The version of the newest row.
    newest: u64,
    /// When watchers may be told again.
    next: Time,
    sessions: Rows<SessionKey, SessionInfo>,
    agents: Rows<String, AgentInfo>,
    interactions: Rows<InteractionId, InteractionInfo>,
}

#[derive(Debug)]
struct Watcher {
    /// The watcher has all rows up to this version.
    has: u64,
    /// The last line to the watcher is not written yet.
    is_busy: bool,
}

/// Rows that may have changed.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    pub(crate) sessions: BTreeSet<SessionKey>,
    pub(crate) agents: BTreeSet<String>,
    pub(crate) interactions: BTreeSet<InteractionId>,
}

impl Watch {
    pub(crate) fn is_on(&self) -> bool {
        !self.watchers.is_empty()
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.watchers.keys().copied()
    }

    pub(crate) fn has(&self, client: ClientId) -> bool {
        self.watchers.contains_key(&client)
    }

    /// The row of a session may be another one, or there no more.
    pub(crate) fn session_changed(&mut self, key: SessionKey) {
        if self.is_on() {
            self.sessions.stale.insert(key);
        }
    }

    pub(crate) fn agent_changed(&mut self, name: &str) {
        if self.is_on() && !self.agents.stale.contains(name) {
            self.agents.stale.insert(name.to_owned());
        }
    }

    pub(crate) fn interaction_changed(&mut self, id: InteractionId) {
        if self.is_on() {
            self.interactions.stale.insert(id);
        }
    }

    pub(crate) fn begin(&mut self, client: ClientId) {
        self.watchers.insert(client, Watcher { has: self.version, is_busy: true });
    }

    /// All rows, which a client is told in one answer.
    pub(crate) fn tell_all(&mut self, client: ClientId) -> Watched {
        self.watchers.insert(client, Watcher { has: self.version, is_busy: true });
        let mut all = Watched {
            sessions: self.sessions.all(),
            agents: self.agents.all(),
            interactions: self.interactions.all(),
        };
        all.sessions.sort_by_key(|info| std::cmp::Reverse(info.updated));
        all.interactions.sort_by_key(|info| info.at);
        all
    }

    pub(crate) fn end(&mut self, client: ClientId) {
        if self.watchers.remove(&client).is_some() && self.watchers.is_empty() {
            *self = Watch::default();
        }
    }

    /// A line to a watcher was written.
    pub(crate) fn written(&mut self, client: ClientId) {
        if let Some(watcher) = self.watchers.get_mut(&client) {
            watcher.is_busy = false;
        }
    }

    /// Returns the time of the next notification; `None` without changes or watchers that can take
    /// one.
    pub(crate) fn due(&self) -> Option<Time> {
        let is_stale = !self.sessions.stale.is_empty()
            || !self.agents.stale.is_empty()
            || !self.interactions.stale.is_empty();
        let mut free = self.watchers.values().filter(|watcher| !watcher.is_busy);
        free.any(|watcher| is_stale || watcher.has < self.newest).then_some(self.next)
    }

    pub(crate) fn take_stale(&mut self) -> Stale {
        Stale {
            sessions: std::mem::take(&mut self.sessions.stale),
            agents: std::mem::take(&mut self.agents.stale),
            interactions: std::mem::take(&mut self.interactions.stale),
        }
    }

    /// The row of a session as it was told last.
    pub(crate) fn session(&self, key: SessionKey) -> Option<&SessionInfo> {
        self.sessions.by_key.get(&key).map(|row| &row.value)
    }

    pub(crate) fn put_session(&mut self, key: SessionKey, now: Option<SessionInfo>) {
        self.sessions.put(key, now, self.version + 1);
    }

    pub(crate) fn put_agent(&mut self, name: String, now: Option<AgentInfo>) {
        self.agents.put(name, now, self.version + 1);
    }

    pub(crate) fn put_interaction(&mut self, id: InteractionId, now: Option<InteractionInfo>) {
        self.interactions.put(id, now, self.version + 1);
    }

    /// All stale rows were looked at.
    pub(crate) fn seal(&mut self) {
        self.version += 1;
        let newest = [self.sessions.newest, self.agents.newest, self.interactions.newest];
        self.newest = newest.into_iter().max().unwrap_or_default();
    }

    /// A line for each watcher that can take one and has not got all rows.
    pub(crate) fn tell(&mut self, now: Time) -> Vec<(ClientId, Bytes)> {
        let mut told = Vec::new();
        // Watchers that have the same are told the same.
        let mut lines: BTreeMap<u64, Option<Bytes>> = BTreeMap::new();
        for (client, watcher) in &mut self.watchers {
            if watcher.is_busy || watcher.has >= self.newest {
                continue;
            }
            let line = lines.entry(watcher.has).or_insert_with(|| {
                let (sessions, gone_sessions) = self.sessions.since(watcher.has);
                let (agents, gone_agents) = self.agents.since(watcher.has);
                let (interactions, gone_interactions) = self.interactions.since(watcher.has);
                let removed = Removed {
                    sessions: gone_sessions,
                    agents: gone_agents,
                    interactions: gone_interactions,
                };
                let changed = Changed { sessions, agents, interactions, removed };
                // Rows that appeared and disappeared in between are not reported.
                (changed != Changed::default())
                    .then(|| build::notification(method::CHANGED, &changed))
            });
            watcher.has = self.version;
            if let Some(line) = line {
                watcher.is_busy = true;
                told.push((*client, line.clone()));
            }
        }
        if !told.is_empty() {
            self.next = now.after(PAUSE);
        }
        let has: BTreeSet<u64> = self.watchers.values().map(|watcher| watcher.has).collect();
        self.sessions.forget(&has);
        self.agents.forget(&has);
        self.interactions.forget(&has);
        told
    }
}

/// Key of a row for clients.
trait Keyed {
    type Key: std::fmt::Debug + Clone;
    fn key(&self) -> Self::Key;
}

impl Keyed for SessionInfo {
    type Key = SessionRowKey;
    fn key(&self) -> SessionRowKey {
        self.row_key()
    }
}

impl Keyed for AgentInfo {
    type Key = Untrusted;
    fn key(&self) -> Untrusted {
        self.name.clone()
    }
}

impl Keyed for InteractionInfo {
    type Key = Untrusted;
    fn key(&self) -> Untrusted {
        self.id.clone()
    }
}

/// Rows of one kind.
#[derive(Debug)]
struct Rows<K, R: Keyed> {
    by_key: BTreeMap<K, Row<R>>,
    /// Rows that some watcher has and that are there no more.
    gone: Vec<Gone<R::Key>>,
    stale: BTreeSet<K>,
    newest: u64,
}

#[derive(Debug)]
struct Row<R> {
    value: R,
    /// The version in which it was first there.
    since: u64,
    /// The version in which it became what it is.
    version: u64,
}

#[derive(Debug)]
struct Gone<P> {
    key: P,
    /// The versions in which it was there: from the first on, and no more in the last.
    there: std::ops::Range<u64>,
}

impl<K, R: Keyed> Default for Rows<K, R> {
    fn default() -> Self {
        Rows { by_key: BTreeMap::new(), gone: Vec::new(), stale: BTreeSet::new(), newest: 0 }
    }
}

impl<K: Ord, R: Keyed + Clone + PartialEq> Rows<K, R> {
    fn all(&self) -> Vec<R> {
        self.by_key.values().map(|row| row.value.clone()).collect()
    }

    /// Returns a row in this version; `None` if it does not exist.
    fn put(&mut self, key: K, now: Option<R>, version: u64) {
        match (self.by_key.get_mut(&key), now) {
            (Some(row), Some(now)) if row.value == now => return,
            (Some(row), Some(now)) => (row.value, row.version) = (now, version),
            (None, Some(value)) => {
                self.by_key.insert(key, Row { value, since: version, version });
            }
            (Some(_), None) => {
                let row = self.by_key.remove(&key);
                let gone = row.map(|row| Gone { key: row.value.key(), there: row.since..version });
                self.gone.extend(gone);
            }
            (None, None) => return,
        }
        self.newest = version;
    }

    /// The rows that are other than they were in a version, and the keys of those that were there then.
    fn since(&self, version: u64) -> (Vec<R>, Vec<R::Key>) {
        let newer = self.by_key.values().filter(|row| row.version > version);
        let gone = self.gone.iter().filter(|gone| gone.there.contains(&version));
        (newer.map(|row| row.value.clone()).collect(), gone.map(|gone| gone.key.clone()).collect())
    }

    /// Keeps only changes that a watcher at one of these versions lacks.
    fn forget(&mut self, has: &BTreeSet<u64>) {
        self.gone.retain(|gone| has.range(gone.there.clone()).next().is_some());
    }
}
