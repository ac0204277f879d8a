//! The sum of all records: the state from which a daemon starts.

use std::collections::BTreeMap;

use acp_wire::{Id, Version};
use acpd_policy::Remembered;
use bytes::Bytes;

use crate::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use crate::record::{
    AgentRow, AskedRow, AuthRow, HostRow, InteractionRow, JournalRow, PromptKeyRow, Record,
    ReplyRow, Row, RowId, SessionRow, TurnRow, UsageRow,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Identity of the journal, which changes when a backup replaces it.
    pub generation: String,
    pub boot: u64,
    pub agents: BTreeMap<String, AgentRow>,
    pub auth: BTreeMap<String, AuthRow>,
    pub hosts: BTreeMap<HostId, HostState>,
    pub sessions: BTreeMap<SessionKey, SessionState>,
    /// Turns that have not ended, by session and ticket.
    pub turns: BTreeMap<(SessionKey, u64), TurnRow>,
    /// The lines of these turns.
    pub prompts: BTreeMap<(SessionKey, u64), Bytes>,
    pub prompt_keys: BTreeMap<(SessionKey, String), PromptKeyRow>,
    pub interactions: BTreeMap<InteractionId, InteractionRow>,
    pub asked: BTreeMap<u64, AskedRow>,
    pub clients: BTreeMap<String, ClientState>,
    pub remembered: BTreeMap<i64, Remembered>,
    /// Spending of the last day with usage.
    pub spent: Spent,
    /// Highest session number that was ever used.
    pub last_session: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    pub day: Time,
    /// Billionths of a unit, by currency.
    pub parts: BTreeMap<String, u64>,
}

impl Spent {
    /// Adds usage. A later day begins with nothing.
    pub fn add(&mut self, row: &UsageRow) {
        if row.day > self.day {
            *self = Spent { day: row.day, parts: BTreeMap::new() };
        }
        if let Some(cost) = row.cost.as_ref().filter(|_| row.day == self.day) {
            let so_far = self.parts.entry(cost.currency.raw().to_owned()).or_default();
            *so_far = so_far.saturating_add(cost.amount.parts());
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostState {
    pub row: HostRow,
    /// Lines with the agent's ids of their sessions, by place.
    pub parked: BTreeMap<u64, (String, Bytes)>,
    /// Possibly unwritten lines.
    pub outbox: BTreeMap<u64, Bytes>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientState {
    pub version: Version,
    pub received: u64,
    pub replies: BTreeMap<Id, ReplyRow>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionState {
    pub row: SessionRow,
    pub head: Seq,
    /// The client's `mcpServers` (JSON array).
    pub mcp_servers: Option<Bytes>,
}

impl Snapshot {
    /// Returns whether the owner of a new row exists, the output of a process does not go back, and
    /// no request or question outlives its owner. The engine writes no other records, so the store
    /// does not check them.
    pub fn fits(&self, record: &Record) -> bool {
        let asks = |host: &HostId| {
            self.asked.values().any(|row| row.host == *host)
                || self.interactions.values().any(|row| row.host == *host)
        };
        let asks_in = |session| self.interactions.values().any(|row| row.session == Some(session));
        let (host, session) = match record {
            Record::Put(Row::Reply(row)) => return self.clients.contains_key(&row.token),
            Record::HostGone { host } => return !asks(host),
            Record::SessionRemoved { session } => return !asks_in(*session),
            Record::Put(row) => match row {
                Row::Host(row) => {
                    let old = self.hosts.get(&row.host);
                    return old.is_none_or(|old| old.row.offset <= row.offset);
                }
                Row::Outbox { host, .. } | Row::Parked { host, .. } => (Some(*host), None),
                Row::Asked(row) => (Some(row.host), None),
                Row::Interaction(row) => (Some(row.host), row.session),
                Row::Turn(row) => (None, Some(row.session)),
                Row::PromptKey(row) => (None, Some(row.session)),
                Row::Prompt { session, .. } | Row::Secret { session, .. } => (None, Some(*session)),
                Row::Value { session, .. } => (None, Some(*session)),
                _ => (None, None),
            },
            Record::Event(row) => (None, Some(row.session)),
            Record::Forked(fork) => (None, Some(fork.session)),
            _ => (None, None),
        };
        host.is_none_or(|host| self.hosts.contains_key(&host))
            && session.is_none_or(|session| self.sessions.contains_key(&session))
    }

    /// An event only moves its session's head.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Boot { boot } => self.boot = *boot,
            Record::Put(row) => self.put(row.clone()),
            Record::Delete(key) => self.delete(key),
            Record::HostGone { host } => drop(self.hosts.remove(host)),
            Record::ClientGone { token } => drop(self.clients.remove(token)),
            Record::SessionRemoved { session } => {
                self.sessions.remove(session);
                self.turns.retain(|(of, _), _| of != session);
                self.prompts.retain(|(of, _), _| of != session);
                self.prompt_keys.retain(|(of, _), _| of != session);
            }
            Record::Event(row) => {
                if let Some(state) = self.sessions.get_mut(&row.session) {
                    state.head = row.seq;
                }
            }
            Record::Forked(fork) if self.sessions.contains_key(&fork.from) => {
                let begins = |state: &&mut SessionState| state.head == 0;
                if let Some(state) = self.sessions.get_mut(&fork.session).filter(begins) {
                    state.head = fork.upto;
                }
            }
            Record::Forked(_) => {}
            Record::Usage(row) => self.spent.add(row),
        }
    }

    /// Owners come first in the order of the store.
    pub fn put(&mut self, row: Row) {
        match row {
            Row::Client { token, version, received } => {
                let client = self.clients.entry(token).or_default();
                (client.version, client.received) = (version, received);
            }
            Row::Reply(row) => {
                if let Some(client) = self.clients.get_mut(&row.token) {
                    client.replies.insert(row.id.clone(), row);
                }
            }
            Row::Host(row) => {
                let state = self.hosts.entry(row.host).or_default();
                state.row = row;
            }
            Row::Outbox { host, chunk, line } => {
                if let Some(state) = self.hosts.get_mut(&host) {
                    state.outbox.insert(chunk, line);
                }
            }
            Row::Parked { host, place, session, line } => {
                if let Some(state) = self.hosts.get_mut(&host) {
                    state.parked.insert(place, (session, line));
                }
            }
            Row::Asked(row) => drop(self.asked.insert(row.id, row)),
            Row::Interaction(row) => drop(self.interactions.insert(row.id, row)),
            Row::Turn(row) => drop(self.turns.insert((row.session, row.ticket), row)),
            Row::Prompt { session, ticket, line } => {
                self.prompts.insert((session, ticket), line);
            }
            Row::Journal(JournalRow { session, head, .. }) => {
                if let Some(state) = self.sessions.get_mut(&session) {
                    state.head = head;
                }
            }
            Row::Session(row) => {
                self.last_session = self.last_session.max(row.key.0);
                let state = self.sessions.entry(row.key).or_default();
                state.row = *row;
            }
            Row::Secret { session, mcp_servers } => {
                if let Some(state) = self.sessions.get_mut(&session) {
                    state.mcp_servers = Some(mcp_servers);
                }
            }
            // Only attaches need them, which read them from the store.
            Row::Value { .. } => {}
            Row::PromptKey(row) => {
                self.prompt_keys.insert((row.session, row.key.clone()), row);
            }
            Row::Agent(row) => drop(self.agents.insert(row.name.clone(), row)),
            Row::Auth(row) => drop(self.auth.insert(row.agent.clone(), row)),
            Row::Remembered(row) => drop(self.remembered.insert(row.id, row)),
        }
    }

    fn delete(&mut self, key: &RowId) {
        match key {
            RowId::Reply(token, id) => {
                if let Some(client) = self.clients.get_mut(token) {
                    client.replies.remove(id);
                }
            }
            RowId::Outbox(host, chunk) => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.outbox.remove(chunk);
                }
            }
            RowId::Parked(host, place) => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.parked.remove(place);
                }
            }
            RowId::Asked(id) => drop(self.asked.remove(id)),
            RowId::Interaction(id) => drop(self.interactions.remove(id)),
            RowId::Turn(session, ticket) => {
                self.turns.remove(&(*session, *ticket));
                self.prompts.remove(&(*session, *ticket));
            }
            RowId::Remembered(id) => drop(self.remembered.remove(id)),
        }
    }
}
