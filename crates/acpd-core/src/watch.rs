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
use std::ops::Range;

use acp_wire::build;
use acpd_api::{AgentInfo, Changed, InteractionInfo, SessionInfo, Watched, method};
use bytes::Bytes;

use crate::ids::{ClientId, InteractionId, Requester, SessionKey, Time};

/// Milliseconds between two lines to a watcher.
const PAUSE: u64 = 50;

/// Sessions come first: a change of one may change the row of its agent, and those of its questions.
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

/// The watchers, and the rows as they were told last.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    watchers: BTreeMap<ClientId, Watcher>,
    /// Requests to watch that are not answered.
    new: Vec<Requester>,
    /// Grows with each look at the rows.
    version: u64,
    /// The version of the newest row.
    newest: u64,
    /// When watchers may be told again.
    next: Time,
    rows: BTreeMap<RowKey, Row>,
    /// Rows that some watcher has and that are there no more.
    gone: Vec<GoneRow>,
    /// Rows that may have changed.
    stale: BTreeSet<RowKey>,
}

#[derive(Debug)]
struct Watcher {
    /// The watcher has all rows up to this version.
    has: u64,
    /// The last line to the watcher is not written yet.
    is_busy: bool,
}

#[derive(Debug)]
struct Row {
    value: WatchedRow,
    /// The version in which it was first there.
    since: u64,
    /// The version in which it became what it is.
    version: u64,
}

#[derive(Debug)]
struct GoneRow {
    value: WatchedRow,
    /// The versions in which it was there: from the first on, and no more in the last.
    there: Range<u64>,
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
        self.changed(RowKey::Session(key));
    }

    pub(crate) fn agent_changed(&mut self, name: &str) {
        self.changed(RowKey::Agent(name.to_owned()));
    }

    pub(crate) fn interaction_changed(&mut self, id: InteractionId) {
        self.changed(RowKey::Question(id));
    }

    fn changed(&mut self, key: RowKey) {
        if self.is_on() {
            self.stale.insert(key);
        }
    }

    pub(crate) fn begin(&mut self, to: Requester) {
        self.new.push(to);
    }

    /// Returns the new watchers, which are to be sent all rows.
    pub(crate) fn take_new(&mut self) -> Vec<Requester> {
        for to in &self.new {
            self.watchers.insert(to.client, Watcher { has: self.version, is_busy: true });
        }
        std::mem::take(&mut self.new)
    }

    /// All rows, which a client is told in one answer.
    pub(crate) fn tell_all(&mut self, client: ClientId) -> Watched {
        self.watchers.insert(client, Watcher { has: self.version, is_busy: true });
        let Changed { mut sessions, agents, mut interactions, .. } = self.changed_since(0);
        sessions.sort_by_key(|info| std::cmp::Reverse(info.updated));
        interactions.sort_by_key(|info| info.at);
        Watched { sessions, agents, interactions }
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
        let mut free = self.watchers.values().filter(|watcher| !watcher.is_busy);
        let is_behind = |watcher: &Watcher| !self.stale.is_empty() || watcher.has < self.newest;
        free.any(is_behind).then_some(self.next)
    }

    pub(crate) fn take_stale(&mut self) -> BTreeSet<RowKey> {
        std::mem::take(&mut self.stale)
    }

    /// The row of a session as it was told last.
    pub(crate) fn session(&self, key: SessionKey) -> Option<&SessionInfo> {
        match &self.rows.get(&RowKey::Session(key))?.value {
            WatchedRow::Session(info) => Some(info),
            _ => None,
        }
    }

    /// Takes a row as it is now, in the next version; `None` if it does not exist.
    pub(crate) fn put(&mut self, key: RowKey, now: Option<WatchedRow>) {
        let version = self.version + 1;
        match (self.rows.get_mut(&key), now) {
            (Some(row), Some(now)) if row.value == now => return,
            (Some(row), Some(now)) => (row.value, row.version) = (now, version),
            (None, Some(value)) => {
                self.rows.insert(key, Row { value, since: version, version });
            }
            (Some(_), None) => {
                let row = self.rows.remove(&key);
                let gone = row.map(|row| GoneRow { value: row.value, there: row.since..version });
                self.gone.extend(gone);
            }
            (None, None) => return,
        }
        self.newest = version;
    }

    /// All stale rows were looked at.
    pub(crate) fn seal(&mut self) {
        self.version += 1;
    }

    /// A line for each watcher that can take one and has not got all rows.
    pub(crate) fn tell(&mut self, now: Time) -> Vec<(ClientId, Bytes)> {
        let behind = self.watchers.iter().filter(|(_, it)| !it.is_busy && it.has < self.newest);
        let behind: Vec<(ClientId, u64)> = behind.map(|(client, it)| (*client, it.has)).collect();
        let mut told = Vec::new();
        // Watchers that have the same are told the same.
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
            told.extend(line.clone().map(|line| (client, line)));
        }
        if !told.is_empty() {
            self.next = now.after(PAUSE);
        }
        // Changes are kept only as long as a watcher lacks them.
        let has: BTreeSet<u64> = self.watchers.values().map(|watcher| watcher.has).collect();
        self.gone.retain(|gone| has.range(gone.there.clone()).next().is_some());
        told
    }

    /// The rows that are other than they were in a version, and the keys of those that were there then.
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
        for gone in self.gone.iter().filter(|gone| gone.there.contains(&version)) {
            match &gone.value {
                WatchedRow::Session(info) => removed.sessions.push(info.row_key()),
                WatchedRow::Agent(info) => removed.agents.push(info.name.clone()),
                WatchedRow::Question(info) => removed.interactions.push(info.id.clone()),
            }
        }
        changed
    }
}
