//! Clients with a token, which lose nothing when their connection or the daemon ends.
//!
//! ```text
//!              initialize with a token
//!  (unknown) ──────────────────────────▶ here ── connection or daemon lost ─▶ away ── too long ─▶ (unknown)
//!                                         ▲                                    │
//!                                         └── initialize with what it has ─────┘
//! ```
//!
//! acpd counts the client's lines in the transaction that processes them, and the client repeats
//! uncounted lines. After a reconnect the client reports its position in each session and its open
//! requests. Answers to requests that changed something are kept until the client confirms them;
//! other requests can be repeated.
//!
//! Architecture invariant: no request is carried out twice.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::{Id, Version, build, locate};
use acpd_api::{Answered, Received, Resume, method};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::clients::{Client, Clients, Open};
use crate::cx::Cx;
use crate::ids::{ClientId, Requester, SessionKey, Time};
use crate::input::{Effect, Numbers, ToClient};
use crate::record::{ClientState, Record, ReplyRow, Row, RowId, Sender};
use crate::timers::{Timer, Timers};
use crate::views::without_boolean_options;

/// Time for a client to reconnect (ms).
const AWAY: u64 = 60 * 60_000;
/// Number of clients from which each new one displaces an absent one: first one without open work,
/// then the longest absent. Connected clients stay.
const KNOWN: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Resumable {
    token: String,
    pub(super) version: Version,
    pub(super) away: Option<Time>,
    /// Sessions of the last connection, with the order of their attachments.
    pub(super) was_at: BTreeMap<SessionKey, u64>,
    received: u64,
    pub(super) replies: BTreeMap<Id, ReplyRow>,
}

impl Clients {
    pub(crate) fn recovered(
        generation: String,
        known: BTreeMap<String, ClientState>,
        now: Time,
    ) -> Clients {
        let resumable = (1..).zip(known).map(|(number, (token, state))| {
            let ClientState { version, received, replies } = state;
            let (away, was_at) = (Some(now), BTreeMap::new());
            // Numbers that no connection gets.
            let client = ClientId(u64::MAX - number);
            (client, Resumable { token, version, away, was_at, received, replies })
        });
        Clients { resumable: resumable.collect(), generation, ..Clients::default() }
    }

    /// Returns the version of a client that is connected, or may come back.
    pub(crate) fn version_of(&self, client: ClientId) -> Version {
        let here = self.connected.get(&client).map(|here| here.view.version);
        let away = || self.resumable.get(&client).map(|known| known.version);
        here.or_else(away).unwrap_or_default()
    }

    pub(crate) fn sender(&self, to: &Requester) -> Option<Sender> {
        let token = self.token_of(to.client)?;
        Some(Sender { token: token.to_owned(), id: to.id.clone() })
    }

    pub(crate) fn requester(&self, sender: Sender) -> Option<Requester> {
        Some(Requester::new(self.by_token(&sender.token)?, sender.id))
    }

    pub(crate) fn token_of(&self, client: ClientId) -> Option<&str> {
        self.resumable.get(&client).map(|known| known.token.as_str())
    }

    pub(crate) fn may_get_answers(&self, client: ClientId) -> bool {
        self.connected.contains_key(&client) || self.resumable.contains_key(&client)
    }

    pub(crate) fn by_token(&self, token: &str) -> Option<ClientId> {
        self.with_token(|known| known == token)
    }

    pub(crate) fn with_token(&self, is_it: impl Fn(&str) -> bool) -> Option<ClientId> {
        let known = self.resumable.iter().find(|(_, known)| is_it(&known.token));
        known.map(|(client, _)| *client)
    }

    /// Takes the state that the client came back with, once the missed lines are sent.
    pub(crate) fn take_resume(&mut self, client: ClientId) -> Option<Resume> {
        self.connected.get_mut(&client)?.resume.take()
    }

    pub(crate) fn wait_for_late(&self, timers: &mut Timers) {
        if let Some(late) = self.next_late() {
            timers.set(Timer::Resumable, late);
        }
    }

    pub(crate) fn name(&mut self, client: ClientId, token: &str, numbers: Numbers) {
        let old = self.by_token(token);
        let known = old.and_then(|old| self.resumable.remove(&old)).unwrap_or_default();
        if old.is_some_and(|old| self.counted.remove(&old)) {
            self.counted.insert(client);
        }
        let version = self.version_of(client);
        let known = Resumable { token: token.to_owned(), version, away: None, ..known };
        self.resumable.insert(client, known);
        if let Some(client) = self.connected.get_mut(&client) {
            client.view.numbers = numbers;
        }
    }

    /// `resume`: the client's state; `waits_for`: its requests that are open here.
    pub(crate) fn come_back(&mut self, client: ClientId, resume: Resume, waits_for: Vec<Id>) {
        let Some(known) = self.resumable.get(&client) else { return };
        let open = &resume.open;
        let is_known = |id: &Id| waits_for.contains(id) || known.replies.contains_key(id);
        let again = open.iter().filter(|id| !is_known(id)).cloned().collect();
        if let Some(client) = self.connected.get_mut(&client) {
            // Other requests were answered while the journal could not be written.
            client.open.extend(waits_for.into_iter().map(|id| {
                let given_up = !open.contains(&id);
                (id, Open { kept: true, given_up })
            }));
            client.again = again;
            client.resume = Some(resume);
        }
    }

    pub(crate) fn generation(&self) -> &str {
        &self.generation
    }

    /// Returns the number of committed lines and the requests to send again
    /// ([`acpd_api::Resumed`]).
    pub(crate) fn resumed(&self, client: ClientId) -> Option<(u64, Vec<Id>)> {
        let (here, known) = (self.connected.get(&client)?, self.resumable.get(&client)?);
        Some((known.received, here.again.clone()))
    }

    pub(crate) fn wait_longer(&mut self, ms: u64) {
        for since in self.resumable.values_mut().filter_map(|known| known.away.as_mut()) {
            *since = since.after(ms);
        }
    }

    pub(crate) fn are_awaited(&self) -> bool {
        self.next_late().is_some()
    }

    fn next_late(&self) -> Option<Time> {
        self.resumable.values().filter_map(|known| known.away).min().map(|since| since.after(AWAY))
    }

    pub(crate) fn late(&self, now: Time) -> BTreeSet<String> {
        let is_late = |known: &Resumable| known.away.is_some_and(|since| now.since(since) >= AWAY);
        let late = self.resumable.values().filter(|known| is_late(known));
        late.map(|known| known.token.clone()).collect()
    }

    /// Returns the least needed absent client if there are too many. `waited`: clients with open
    /// work.
    pub(crate) fn one_too_many(
        &self,
        waited: impl FnOnce() -> BTreeSet<ClientId>,
    ) -> Option<String> {
        if self.resumable.len() < KNOWN {
            return None;
        }
        let waited = waited();
        let away = self.resumable.iter().filter(|(_, known)| known.away.is_some());
        let longest = away.min_by_key(|(client, known)| {
            let waits = waited.contains(client) || !known.replies.is_empty();
            (waits, known.away, &known.token)
        });
        longest.map(|(_, known)| known.token.clone())
    }

    pub(crate) fn forget(&mut self, token: &str) -> Option<ClientId> {
        let client = self.by_token(token)?;
        self.resumable.remove(&client).map(|_| client)
    }

    pub(super) fn keep_reply(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        session: Option<SessionKey>,
        line: &Bytes,
    ) {
        let here = self.connected.get(&to.client);
        // Includes requests with an unknown outcome: the client may not have read that error.
        let is_kept = |client: &Client| client.open.get(&to.id).is_some_and(|open| open.kept);
        if here.is_some_and(|client| !is_kept(client)) {
            return;
        }
        let Some(known) = self.resumable.get_mut(&to.client) else { return };
        let (token, id) = (known.token.clone(), to.id.clone());
        let row = ReplyRow { token, id, line: line.clone(), session };
        known.replies.insert(to.id.clone(), row.clone());
        cx.put(Row::Reply(row));
    }

    pub(crate) fn on_replies_taken(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        params: Option<&RawValue>,
    ) {
        let answered = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Answered { ids } = answered.unwrap_or_default();
        for id in ids {
            let open = self.connected.get_mut(&client).and_then(|here| here.open.get_mut(&id));
            if let Some(open) = open.filter(|open| open.given_up) {
                open.kept = false;
            }
            if let Some(known) = self.resumable.get_mut(&client) {
                known.confirm(cx, &id);
            }
        }
    }

    pub(crate) fn has_succeeded(&self, client: ClientId, requests: &[Id]) -> bool {
        self.resumable.get(&client).is_some_and(|known| {
            let mut replies = requests.iter().filter_map(|id| known.replies.get(id));
            replies.any(|reply| locate(&reply.line, &["result"]).is_some())
        })
    }

    /// Drops answers to requests that the client no longer has open. Returns the others.
    pub(crate) fn replies_after_return(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        open: &[Id],
    ) -> Vec<ReplyRow> {
        let Some(known) = self.resumable.get_mut(&client) else { return Vec::new() };
        let open: BTreeSet<&Id> = open.iter().collect();
        let had = known.replies.keys().filter(|id| !open.contains(id)).cloned();
        for id in had.collect::<Vec<_>>() {
            known.confirm(cx, &id);
        }
        let mut replies: Vec<_> = known.replies.values().cloned().collect();
        if self.connected.get(&client).is_some_and(|here| !here.view.capabilities.boolean_options) {
            // Options were not filtered while the client's abilities were unknown.
            for reply in &mut replies {
                let options = ["result", "configOptions"];
                reply.line = without_boolean_options(&reply.line, &options);
            }
        }
        replies
    }

    pub(crate) fn count_line(&mut self, client: ClientId) {
        if let Some(known) = self.resumable.get_mut(&client) {
            known.received += 1;
            self.counted.insert(client);
        }
    }

    pub(crate) fn has_counted(&self) -> bool {
        !self.counted.is_empty()
    }

    pub(crate) fn commit_received(&mut self, cx: &mut Cx) {
        for client in std::mem::take(&mut self.counted) {
            let Some(known) = self.resumable.get(&client) else { continue };
            let (token, version) = (known.token.clone(), known.version);
            let received = known.received;
            if known.away.is_none() {
                let lines = Received { lines: received };
                let line = build::notification(method::CLIENT_RECEIVED, &lines);
                cx.send(Effect::Client(client, ToClient::Line(line)));
            }
            cx.put(Row::Client { token, version, received });
        }
    }

    pub(crate) fn present(&self) -> impl Iterator<Item = ClientId> {
        let here = self.resumable.iter().filter(|(_, known)| known.away.is_none());
        here.map(|(client, _)| *client)
    }
}

impl Resumable {
    pub(super) fn confirm(&mut self, cx: &mut Cx, id: &Id) {
        if self.replies.remove(id).is_some() {
            let key = RowId::Reply(self.token.clone(), id.clone());
            cx.record_later(Record::Delete(key));
        }
    }
}
