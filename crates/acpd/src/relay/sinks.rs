//! Lines to clients, and the limits for a client that does not read them.

use std::collections::BTreeMap;

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ToClient};
use bytes::Bytes;

use crate::clients::Sink;
use crate::config::Daemon;

/// A client is let go when this many times its queue limit, and one line of any length, wait for it.
const OVERRUN: usize = 8;

/// Room for lines that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// The client has to read first.
    None,
    /// There is no such client.
    Gone,
}

/// The sending ends of all connections. What the hub has to hear is returned.
pub(super) struct Sinks {
    by_client: BTreeMap<ClientId, Sink>,
    /// Bytes that may wait for a client before it lags.
    lagging: usize,
    /// Bytes that may wait for a client before it is let go.
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

    /// Closes a connection. Without its sink it ends after what it was given.
    pub(super) fn remove(&mut self, client: ClientId) {
        self.by_client.remove(&client);
    }

    /// Closes all connections, in the same way.
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

    /// Returns the room for a line that a client can do without: it does not lag for that.
    pub(super) fn room(&self, client: ClientId) -> Room {
        match self.by_client.get(&client) {
            Some(sink) if sink.waiting() < self.lagging / 2 => Room::Enough,
            Some(_) => Room::None,
            None => Room::Gone,
        }
    }

    /// Sends a line for which there is [`Room`].
    pub(super) fn offer(&self, client: ClientId, line: Bytes) {
        if let Some(sink) = self.by_client.get(&client) {
            sink.send(ToClient::Line(line));
        }
    }

    /// A client has read everything that it was sent. Returns whether it lags no more.
    pub(super) fn drained(&mut self, client: ClientId) -> bool {
        // More may have piled up since; then it is reported again after that.
        let is_behind = |sink: &&Sink| sink.lagging() && sink.waiting() <= self.lagging;
        let sink = self.by_client.get(&client).filter(is_behind);
        sink.inspect(|sink| sink.set_lagging(false)).is_some()
    }
}
