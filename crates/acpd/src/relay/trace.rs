//! Lines that a client watches as they pass (`_acpd/trace`).
//!
//! ```text
//!  agent ─▶ tap ─▶ hub ─▶ batch ─ commit ─▶ tap ─▶ agent
//!            └──────── the tracer ◀──────────┘
//! ```
//!
//! Without a tracer, the tap is one comparison per batch of lines. A line for which its reader has
//! no room is counted and left out, so nothing waits for a reader.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use acp_wire::{Body, Id, Message, Outcome, build, parse, str_at};
use acpd_api::{Direction, LineKind, Traced, method, redact};
use acpd_core::ids::{ClientId, HostId, Time};
use acpd_core::{Hub, Trace, TraceOf};
use bytes::Bytes;
use glob::Pattern;
use serde_json::value::{RawValue, to_raw_value};

use super::sinks::{Room, Sinks};

/// Longest line whose content is shown, in bytes.
const SHOWN: usize = 256 << 10;
/// Requests whose answers are awaited.
const OPEN: usize = 1024;

/// The other end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Peer {
    Agent(HostId),
    Client(ClientId),
}

#[derive(Default)]
pub(super) struct Traces(Vec<Tracer>);

struct Tracer {
    trace: Trace,
    method: Option<Pattern>,
    /// Unanswered requests by sender. The oldest are forgotten first.
    open: BTreeMap<(Peer, bool, Id), ShownRequest>,
    missed: u64,
}

struct ShownRequest {
    method: String,
    session: Option<String>,
    at: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) now: Time,
    pub(super) peer: Peer,
    pub(super) to_peer: bool,
}

impl Way {
    fn direction(self) -> Direction {
        match (self.peer, self.to_peer) {
            (Peer::Agent(_), true) => Direction::ToAgent,
            (Peer::Agent(_), false) => Direction::FromAgent,
            (Peer::Client(_), true) => Direction::ToClient,
            (Peer::Client(_), false) => Direction::FromClient,
        }
    }
}

impl Traces {
    pub(super) fn are_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// Begins a trace, which replaces the client's earlier one.
    pub(super) fn begin(&mut self, trace: Trace) {
        self.end(trace.client);
        // A text that is no pattern is a name.
        let pattern =
            |text: &str| Pattern::new(text).or_else(|_| Pattern::new(&Pattern::escape(text)));
        let method = trace.method.as_deref().and_then(|text| pattern(text).ok());
        self.0.push(Tracer { trace, method, open: BTreeMap::new(), missed: 0 });
    }

    pub(super) fn end(&mut self, client: ClientId) {
        self.0.retain(|tracer| tracer.trace.client != client);
    }

    pub(super) fn line(&mut self, way: Way, line: &Bytes, bytes: u64, hub: &Hub, sinks: &Sinks) {
        if matches!(way.peer, Peer::Client(client) if self.0.iter().any(|t| t.trace.client == client))
        {
            // Traces are not traced.
            return;
        }
        let seen = Seen::of(line);
        let shown = |tracer: &mut Tracer| tracer.show(way, &seen, (line, bytes), hub, sinks);
        self.0.retain_mut(shown);
    }
}

/// Returns the known bytes of a line, and the number of all of them.
pub(super) fn known_part(body: &Body) -> (&Bytes, u64) {
    match body {
        Body::Line(line) => (line, line.len() as u64),
        Body::Oversized { head, len, .. } => (head, *len),
    }
}

struct Seen<'a> {
    kind: LineKind,
    id: Option<Id>,
    method: Option<Cow<'a, str>>,
    session: Option<Cow<'a, str>>,
    /// The kind of a `session/update`.
    update: Option<Cow<'a, str>>,
}

impl Seen<'_> {
    fn of(line: &Bytes) -> Seen<'_> {
        let (kind, id, method) = match parse(line) {
            Ok(Message::Request { id, method, .. }) => (LineKind::Request, Some(id), Some(method)),
            Ok(Message::Notification { method, .. }) => {
                (LineKind::Notification, None, Some(method))
            }
            Ok(Message::Response { id, outcome }) => {
                let is_error = matches!(outcome, Outcome::Error(_));
                (if is_error { LineKind::Error } else { LineKind::Response }, Some(id), None)
            }
            Err(_) => (LineKind::Unreadable, None, None),
        };
        let text = |path| if kind == LineKind::Unreadable { None } else { str_at(line, path) };
        let session = text(&["params", "sessionId"]).or_else(|| text(&["result", "sessionId"]));
        let update = text(&["params", "update", "sessionUpdate"]);
        Seen { kind, id, method, session, update }
    }

    fn is_answer(&self) -> bool {
        matches!(self.kind, LineKind::Response | LineKind::Error)
    }
}

impl Tracer {
    /// Sends a line if it matches. Returns whether the client is still connected.
    fn show(
        &mut self,
        way: Way,
        seen: &Seen<'_>,
        (line, bytes): (&Bytes, u64),
        hub: &Hub,
        sinks: &Sinks,
    ) -> bool {
        let id = seen.id.clone();
        // An answer goes the other way than its request.
        let asked = match &id {
            Some(id) if seen.is_answer() => self.open.remove(&(way.peer, !way.to_peer, id.clone())),
            _ => None,
        };
        let session =
            seen.session.as_deref().or_else(|| asked.as_ref().and_then(|a| a.session.as_deref()));
        if asked.is_none() && !self.concerns(way.peer, session, hub) {
            return true;
        }
        let method = match &asked {
            Some(asked) => Some(asked.method.as_str()),
            None => seen.method.as_deref(),
        };
        if let Some(pattern) = &self.method
            && !method.is_some_and(|method| pattern.matches(method))
        {
            return true;
        }
        let room = sinks.room(self.trace.client);
        if room == Room::Enough {
            let message = self.trace.full.then(|| shown(line, bytes, method)).flatten();
            let (agent, client) = match way.peer {
                Peer::Agent(host) => (hub.agent_of(host).map(Into::into), None),
                Peer::Client(client) => (None, Some(client.0)),
            };
            let traced = Traced {
                at: way.now.0,
                direction: way.direction(),
                agent,
                client,
                kind: seen.kind,
                id: id.clone(),
                method: method.map(Into::into),
                update: seen.update.as_deref().map(Into::into),
                session_id: session.map(Into::into),
                bytes,
                took: asked.as_ref().map(|asked| asked.at.elapsed().as_secs_f64() * 1e3),
                missed: std::mem::take(&mut self.missed),
                message,
            };
            sinks.offer(self.trace.client, build::notification(method::TRACED, &traced));
        } else {
            self.missed += 1;
        }
        if let (LineKind::Request, Some(id), Some(method)) = (seen.kind, id, method) {
            if self.open.len() >= OPEN {
                let oldest = self.open.iter().min_by_key(|(_, asked)| asked.at);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    self.open.remove(&oldest);
                }
            }
            let session = session.map(str::to_owned);
            let asked = ShownRequest { method: method.to_owned(), session, at: Instant::now() };
            self.open.insert((way.peer, way.to_peer, id), asked);
        }
        room != Room::Gone
    }

    fn concerns(&self, peer: Peer, session: Option<&str>, hub: &Hub) -> bool {
        match (peer, &self.trace.of) {
            (Peer::Agent(host), TraceOf::Agent(agent)) => hub.agent_of(host) == Some(agent),
            (Peer::Agent(host), TraceOf::Session(key)) => hub.is_about(*key, host, session),
            (Peer::Client(_), _) if !self.trace.clients => false,
            (Peer::Client(client), TraceOf::Agent(agent)) => hub.talks_with(client, agent, session),
            (Peer::Client(_), TraceOf::Session(key)) => {
                session.is_some_and(|id| hub.is_named(*key, id))
            }
        }
    }
}

fn shown(line: &Bytes, bytes: u64, method: Option<&str>) -> Option<Box<RawValue>> {
    if bytes > SHOWN as u64 {
        return None;
    }
    let message = serde_json::from_slice(line).ok()?;
    to_raw_value(&redact::message(message, method)).ok()
}
