//! Watchers of all rows, and their versions.
//!
//! ```text
//!  a change ─▶ stale ── at most every 50 ms ─▶ current row, with a new version if it differs
//!                                                 │ rows newer than the watcher's version
//!                                                 ▼
//!                           watcher: free ── notified ─▶ busy ── line written ─▶ free
//! ```
//!
//! Architecture invariant: nothing is kept while no client watches. A slow watcher costs a number
//! and one unwritten line, however much changes: it gets the current rows when it can take them.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::build;
use acpd_api::{AgentInfo, Changed, InteractionInfo, SessionInfo, Watched, method};
use bytes::Bytes;

use crate::ids::{ClientId, InteractionId, SessionKey, Time};

/// Milliseconds between two lines to a watcher.
const PAUSE: u64 = 50;

/// Sessions come first: a change of one may change its agent's row, and its questions'.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowKey {
    Session(SessionKey),
    Agent(String),
    Question(InteractionId),
}

#[derive(Debug, PartialEq)]
pub(crate) enum WatchedRow {
    Session(Box<SessionInfo>),
    Agent(Box<AgentInfo>),
    Question(Box<InteractionInfo>),
}

#[derive(Debug, Default)]
pub(crate) struct Watch {
    watchers: BTreeMap<ClientId, Watcher>,
    /// Grows with each check of the rows.
    version: u64,
    newest: u64,
    next: Time,
    rows: BTreeMap<RowKey, Row>,
    /// Removed rows that some watcher still has.
    gone: Vec<Row>,
    stale: BTreeSet<RowKey>,
}

#[derive(Debug)]
struct Watcher {
    /// The watcher has all rows up to this version.
    has: u64,
    is_busy: bool,
}

#[derive(Debug)]
struct Row {
    value: WatchedRow,
    since: u64,
    /// Version of the last change, or of the removal.
    version: u64,
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

    pub(crate) fn changed(&mut self, key: RowKey) {
        if self.is_on() {
            self.stale.insert(key);
        }
    }

    /// Lets a client have all rows so far.
    pub(crate) fn begin(&mut self, client: ClientId) {
        self.watchers.insert(client, Watcher { has: self.version, is_busy: true });
    }

    pub(crate) fn tell_all(&mut self, client: ClientId) -> Watched {
        self.begin(client);
        let Changed { mut sessions, agents, mut interactions, .. } = self.changed_since(0);
        sessions.sort_by_key(|info| std::cmp::Reverse(info.updated));
        interactions.sort_by_key(|info| info.at);
        Watched { sessions, agents, interactions, hosts: Vec::new() }
    }

    pub(crate) fn end(&mut self, client: ClientId) {
        if self.watchers.remove(&client).is_some() && self.watchers.is_empty() {
            *self = Watch::default();
        }
    }

    pub(crate) fn written(&mut self, client: ClientId) {
        if let Some(watcher) = self.watchers.get_mut(&client) {
            watcher.is_busy = false;
        }
    }

    /// Returns `None` without changes or free watchers.
    pub(crate) fn due(&self) -> Option<Time> {
        let mut free = self.watchers.values().filter(|watcher| !watcher.is_busy);
        let is_behind = |watcher: &Watcher| !self.stale.is_empty() || watcher.has < self.newest;
        free.any(is_behind).then_some(self.next)
    }

    pub(crate) fn take_stale(&mut self) -> BTreeSet<RowKey> {
        std::mem::take(&mut self.stale)
    }

    /// Returns a session's row as last sent.
    pub(crate) fn session(&self, key: SessionKey) -> Option<&SessionInfo> {
        match &self.rows.get(&RowKey::Session(key))?.value {
            WatchedRow::Session(info) => Some(info),
            _ => None,
        }
    }

    /// `now`: `None` = removed.
    pub(crate) fn put(&mut self, key: RowKey, now: Option<WatchedRow>) {
        let version = self.version + 1;
        match (self.rows.get_mut(&key), now) {
            (Some(row), Some(now)) if row.value == now => return,
            (Some(row), Some(now)) => (row.value, row.version) = (now, version),
            (None, Some(value)) => {
                self.rows.insert(key, Row { value, since: version, version });
            }
            (Some(_), None) => {
                let gone = self.rows.remove(&key);
                self.gone.extend(gone.map(|row| Row { version, ..row }));
            }
            (None, None) => return,
        }
        self.newest = version;
    }

    pub(crate) fn seal(&mut self) {
        self.version += 1;
    }

    pub(crate) fn tell(&mut self, now: Time) -> Vec<(ClientId, Bytes)> {
        let behind = self.watchers.iter().filter(|(_, it)| !it.is_busy && it.has < self.newest);
        let behind: Vec<(ClientId, u64)> = behind.map(|(client, it)| (*client, it.has)).collect();
        let mut lines_by_client = Vec::new();
        let mut lines: BTreeMap<u64, Option<Bytes>> = BTreeMap::new();
        for (client, has) in behind {
            let line = lines.entry(has).or_insert_with(|| {
                let changed = self.changed_since(has);
                // Rows that appeared and disappeared in between are not reported.
                (changed != Changed::default())
                    .then(|| build::notification(method::CHANGED, &changed))
            });
            let is_busy = line.is_some();
            self.watchers.insert(client, Watcher { has: self.version, is_busy });
            lines_by_client.extend(line.clone().map(|line| (client, line)));
        }
        if !lines_by_client.is_empty() {
            self.next = now.after(PAUSE);
        }
        // Removed rows are kept only while a watcher has them.
        let has: BTreeSet<u64> = self.watchers.values().map(|watcher| watcher.has).collect();
        self.gone.retain(|gone| has.range(gone.since..gone.version).next().is_some());
        lines_by_client
    }

    fn changed_since(&self, version: u64) -> Changed {
        let mut changed = Changed::default();
        for row in self.rows.values().filter(|row| row.version > version) {
            match &row.value {
                WatchedRow::Session(info) => changed.sessions.push((**info).clone()),
                WatchedRow::Agent(info) => changed.agents.push((**info).clone()),
                WatchedRow::Question(info) => changed.interactions.push((**info).clone()),
            }
        }
        let removed = &mut changed.removed;
        for gone in self.gone.iter().filter(|gone| (gone.since..gone.version).contains(&version)) {
            match &gone.value {
                WatchedRow::Session(info) => removed.sessions.push(info.row_key()),
                WatchedRow::Agent(info) => removed.agents.push(info.name.clone()),
                WatchedRow::Question(info) => removed.interactions.push(info.id.clone()),
            }
        }
        changed
    }
}
