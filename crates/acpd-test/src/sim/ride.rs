//! A client with a token: the real memory of `acpd-client`, and the connections that it has one after another.

use std::collections::{BTreeMap, VecDeque};

use acpd_client::resume::{Resumption, Verdict};
use bytes::Bytes;
use serde_json::Value;

use super::store::Store;

/// One client over all its connections.
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
    /// The daemon refused to take it back.
    pub(super) refused: bool,
    /// Since when it has no connection.
    pub(super) away: u64,
    /// Lines on their way to the daemon.
    pub(super) wire: VecDeque<Bytes>,
}

/// The id of its first `initialize`.
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

    /// The connection is lost. `false`: it does not come back. Who was only told to come later has been away
    /// since before.
    pub(super) fn lost(&mut self, now: u64) -> bool {
        if self.up || !self.is_known {
            self.away = now;
        }
        self.up = false;
        self.refused = false;
        self.has_begun = true;
        self.memory.lost()
    }

    /// There is another connection. How far its memory says that it has seen each session.
    pub(super) fn back(&mut self) -> BTreeMap<String, u64> {
        self.wire = self.memory.back();
        let first = self.wire.front().map(|line| serde_json::from_slice::<Value>(line));
        let mut first = first.and_then(Result::ok).unwrap_or_default();
        let named = first["params"]["_meta"]["_acpd"]["client"]["resume"]["sessions"].take();
        serde_json::from_value(named).unwrap_or_default()
    }

    /// Takes a line of the daemon.
    pub(super) fn receive(
        &mut self,
        bytes: &Bytes,
        line: &Value,
        store: &Store,
    ) -> Result<Word, String> {
        let verdict = self.memory.receive(bytes, &mut self.wire);
        let verdict = verdict.map_err(|error| format!("{error}: {line}"))?;
        let own = &line["result"]["agentCapabilities"]["_meta"]["_acpd"];
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

/// Fate of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The line was for the memory.
    ForMemory,
    /// The user is shown it.
    Shown,
    /// The memory keeps it from the user.
    Kept,
}
