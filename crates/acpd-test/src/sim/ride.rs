//! A client with a token: the real memory of `acpd-client`, and one connection after another.

use std::collections::{BTreeMap, VecDeque};

use acp_wire::{set_member, str_at};
use acpd_api::LinePosition;
use acpd_client::resume::{Resumption, Verdict};
use bytes::Bytes;
use serde_json::{Value, json};

use super::client2::own_part;
use super::store::Store;

#[derive(Debug)]
pub(super) struct Ride {
    token: String,
    memory: Resumption,
    /// The client had a connection before.
    pub(super) has_begun: bool,
    /// The daemon has accepted the client at least once.
    pub(super) is_known: bool,
    /// Set once `initialize` is answered on this connection.
    up: bool,
    /// The daemon refused to resume the connection.
    pub(super) refused: bool,
    /// Start of the time without a connection.
    pub(super) away: u64,
    pub(super) wire: VecDeque<Bytes>,
}

pub(super) const HELLO: &str = "hello";

impl Ride {
    pub(super) fn new(number: u64) -> Ride {
        let token = format!("token-{number:016}");
        Ride {
            memory: Resumption::new(token.clone()),
            token,
            has_begun: false,
            is_known: false,
            up: false,
            refused: false,
            away: 0,
            wire: VecDeque::new(),
        }
    }

    pub(super) fn send(&mut self, line: Bytes) {
        self.memory.send(line, &mut self.wire);
    }

    /// The connection is lost. Returns whether the client resumes. A client that was refused for
    /// the moment has been away since before.
    pub(super) fn lost(&mut self, now: u64) -> bool {
        if self.up || !self.is_known {
            self.away = now;
        }
        self.up = false;
        self.refused = false;
        self.has_begun = true;
        self.memory.lost()
    }

    /// There is another connection. Returns the positions in the memory.
    pub(super) fn back(&mut self) -> BTreeMap<String, u64> {
        self.wire = self.memory.back();
        let first = self.wire.front().map(|line| serde_json::from_slice::<Value>(line));
        let mut first = first.and_then(Result::ok).unwrap_or_default();
        let named = first["params"]["_meta"]["_acpd"]["client"]["resume"]["sessions"].take();
        serde_json::from_value(named).unwrap_or_default()
    }

    pub(super) fn receive(
        &mut self,
        bytes: &Bytes,
        line: &Value,
        store: &Store,
    ) -> Result<Word, String> {
        let verdict = self.memory.receive(bytes, &mut self.wire);
        let verdict = verdict.map_err(|error| format!("{error}: {line}"))?;
        let own = own_part(line);
        let is_greeting = own["generation"].is_string() || (!self.up && line["id"] == HELLO);
        let lines = if is_greeting { &own["received"] } else { &line["params"]["lines"] };
        let committed = store.snapshot.clients.get(&self.token).map_or(0, |client| client.received);
        if lines.as_u64().is_some_and(|lines| lines > committed) {
            return Err(format!("{line}, and {committed} are committed"));
        }
        if verdict == Verdict::Refused || (is_greeting && !line["error"].is_null()) {
            self.refused = true;
        } else if is_greeting {
            (self.up, self.is_known) = (true, true);
        }
        let method = line["method"].as_str().unwrap_or_default();
        Ok(if is_greeting || self.refused || method.starts_with("_acpd/client/") {
            Word::ForMemory
        } else if verdict == Verdict::Swallow {
            Word::Kept
        } else {
            Word::Shown
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    ForMemory,
    /// The user gets the line.
    Shown,
    /// The memory keeps the line from the user.
    Kept,
}

/// Returns a line with a position as a client without positions would get it.
pub(super) fn with_number(line: &Bytes) -> Option<Bytes> {
    let (LinePosition(session, seq), line) = LinePosition::split(line)?;
    let with = |line: &Bytes, name, value: Value| {
        set_member(line, &["params", "_meta", "_acpd", name], value.to_string().as_bytes())
    };
    let of_child = str_at(line, &["params", "sessionId"]).is_some_and(|id| id != session);
    let line = with(&Bytes::copy_from_slice(line), "seq", json!(seq));
    Some(if of_child { with(&line, "session", json!(session)) } else { line })
}
