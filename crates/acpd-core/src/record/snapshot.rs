//! The sum of all records: the state from which a daemon starts.

use std::collections::BTreeMap;

use acp_wire::Id;
use acpd_policy::Remembered;
use bytes::Bytes;

use crate::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use crate::record::{
    AgentRow, AskedRow, AuthRow, HostRow, InteractionRow, PromptKeyRow, Record, ReplyRow,
    SessionRow, TurnRow, TurnStage, UsageRow,
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
    /// Committed output in bytes.
    pub offset: u64,
    /// The offset lies inside a line over the limit, whose end is dropped.
    pub inside: bool,
    /// Lines with the agent's ids of their sessions, in order.
    pub parked: Vec<(String, Bytes)>,
    /// Possibly unwritten lines.
    pub outbox: BTreeMap<u64, Bytes>,
    pub written: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientState {
    pub received: u64,
    pub replies: BTreeMap<Id, ReplyRow>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionState {
    pub row: SessionRow,
    pub head: Seq,
    pub last_ticket: u64,
    /// The client's `mcpServers` (JSON array).
    pub mcp_servers: Option<Bytes>,
}

impl Snapshot {
    /// An event only moves its session's head. Records about missing things are ignored.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Boot { boot } => self.boot = *boot,
            Record::Agent(row) => {
                self.agents.insert(row.name.clone(), row.clone());
            }
            Record::Auth(row) => {
                self.auth.insert(row.agent.clone(), row.clone());
            }
            Record::Host(row) => {
                self.hosts.entry(row.host).or_default().row = row.clone();
            }
            Record::HostGone { host } => {
                self.hosts.remove(host);
                self.interactions.retain(|_, row| row.host != *host);
                self.asked.retain(|_, row| row.host != *host);
            }
            Record::HostOffset { host, offset, inside } => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.offset = *offset;
                    state.inside = *inside;
                }
            }
            Record::Parked { host, session, line } => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.parked.push((session.clone(), line.clone()));
                }
            }
            Record::Unparked { host, session } => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.parked.retain(|(of, _)| session.as_ref().is_some_and(|gone| gone != of));
                }
            }
            Record::Asked(row) if self.hosts.contains_key(&row.host) => {
                self.asked.insert(row.id, row.clone());
            }
            Record::Asked(_) => {}
            Record::Answered { id } => {
                self.asked.remove(id);
            }
            Record::Outbox { host, chunk, line } => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.outbox.insert(*chunk, line.clone());
                }
            }
            Record::Written { host, chunk } => {
                if let Some(state) = self.hosts.get_mut(host) {
                    state.outbox = state.outbox.split_off(&(chunk + 1));
                    state.written = *chunk;
                }
            }
            Record::Session(row) => {
                self.last_session = self.last_session.max(row.key.0);
                self.sessions.entry(row.key).or_default().row.clone_from(row);
            }
            Record::Secret { session, mcp_servers } => {
                if let Some(state) = self.sessions.get_mut(session) {
                    state.mcp_servers = Some(mcp_servers.clone());
                }
            }
            Record::Value { .. } => {}
            Record::SessionRemoved { session } => {
                self.sessions.remove(session);
                self.turns.retain(|(of, _), _| of != session);
                self.prompt_keys.retain(|(of, _), _| of != session);
                self.interactions.retain(|_, row| row.session != Some(*session));
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
            Record::Turn(row) => self.apply_turn(row),
            Record::PromptKey(row) if self.sessions.contains_key(&row.session) => {
                self.prompt_keys.insert((row.session, row.key.clone()), row.clone());
            }
            Record::PromptKey(_) => {}
            Record::Usage(row) => self.spent.add(row),
            Record::Interaction(row) => {
                self.interactions.insert(row.id, row.clone());
            }
            Record::InteractionGone { id } => {
                self.interactions.remove(id);
            }
            Record::Client { token, received } => {
                self.clients.entry(token.clone()).or_default().received = *received;
            }
            Record::ClientGone { token } => {
                self.clients.remove(token);
            }
            Record::Remembered(row) => {
                self.remembered.insert(row.id, row.clone());
            }
            Record::Unremembered { id } => {
                self.remembered.remove(id);
            }
            Record::Reply(row) => {
                if let Some(client) = self.clients.get_mut(&row.token) {
                    client.replies.insert(row.id.clone(), row.clone());
                }
            }
            Record::ReplyGone { token, id } => {
                if let Some(client) = self.clients.get_mut(token) {
                    client.replies.remove(id);
                }
            }
        }
    }

    fn apply_turn(&mut self, row: &TurnRow) {
        let Some(state) = self.sessions.get_mut(&row.session) else { return };
        state.last_ticket = state.last_ticket.max(row.ticket);
        let place = (row.session, row.ticket);
        if row.state == TurnStage::Ended {
            self.turns.remove(&place);
            return;
        }
        let old = self.turns.insert(place, row.clone());
        if let (Some(turn), None, Some(old)) = (self.turns.get_mut(&place), &row.line, old) {
            turn.line = old.line;
        }
    }
}
