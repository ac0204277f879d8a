//! Lines to clients, and the limits for a client that does not read them.

use std::collections::BTreeMap;

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ToClient};
use bytes::Bytes;

use crate::clients::Sink;
use crate::config::Daemon;

/// A client is disconnected when this many times its queue limit, and one longest line, wait for
/// it.
const OVERRUN: usize = 8;

/// Room for optional lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// The client has to read first.
    None,
    Gone,
}

/// The sending ends of all connections. Events for the hub are returned.
pub(super) struct Sinks {
    by_client: BTreeMap<ClientId, Sink>,
    /// Bytes from which on a client lags.
    lagging: usize,
    /// Bytes from which on a client is disconnected.
    most: usize,
}

impl Sinks {
    pub(super) fn new(daemon: &Daemon) -> Sinks {
        let lagging = daemon.client_queue as usize;
        let most = lagging * OVERRUN + daemon.line_limit as usize;
        Sinks { by_client: BTreeMap::new(), lagging, most }
    }

    pub(super) fn insert(&mut self, client: ClientId, sink: Sink) {
        self.by_client.insert(client, sink);
    }

    /// Closes a connection after its queued lines.
    pub(super) fn remove(&mut self, client: ClientId) {
        self.by_client.remove(&client);
    }

    pub(super) fn clear(&mut self) {
        self.by_client.clear();
    }

    pub(super) fn send(&mut self, client: ClientId, what: ToClient) -> Option<ClientEvent> {
        let sink = self.by_client.get(&client)?;
        sink.send(what);
        let waiting = sink.waiting();
        if waiting > self.most {
            tracing::warn!(client = client.0, waiting, "a client reads nothing and is let go");
            if let Some(sink) = self.by_client.remove(&client) {
                sink.cut();
            }
            return Some(ClientEvent::Closed);
        }
        if waiting > self.lagging && !sink.lagging() {
            sink.set_lagging(true);
            return Some(ClientEvent::Lagged);
        }
        None
    }

    /// Returns the room for an optional line, which never makes a client lag.
    pub(super) fn room(&self, client: ClientId) -> Room {
        match self.by_client.get(&client) {
            Some(sink) if sink.waiting() < self.lagging / 2 => Room::Enough,
            Some(_) => Room::None,
            None => Room::Gone,
        }
    }

    pub(super) fn offer(&self, client: ClientId, line: Bytes) {
        if let Some(sink) = self.by_client.get(&client) {
            sink.send(ToClient::Line(line));
        }
    }

    /// Returns whether the client, which has read everything, lags no longer.
    pub(super) fn drained(&mut self, client: ClientId) -> bool {
        // More may have queued since; then there will be another report.
        let is_behind = |sink: &&Sink| sink.lagging() && sink.waiting() <= self.lagging;
        let sink = self.by_client.get(&client).filter(is_behind);
        sink.inspect(|sink| sink.set_lagging(false)).is_some()
    }
}
