//! Lines of clients and processes as inputs of the hub.

use acp_wire::{Body, Frame};
use acpd_core::ids::{ClientId, HostId};
use acpd_core::{ClientEvent, HostEvent, Input};
use bytes::Bytes;

/// A line of a client.
pub(crate) fn client_line(client: ClientId, line: impl Into<Bytes>) -> Input {
    Input::Client(client, ClientEvent::Lines(vec![Body::Line(line.into())]))
}

/// The head of a client's line over the limit.
pub(crate) fn client_oversized(client: ClientId, head: Bytes, len: u64) -> Input {
    let line = Body::Oversized { head, len, inside: false };
    Input::Client(client, ClientEvent::Lines(vec![line]))
}

/// A line of a process, which ends at this byte.
pub(crate) fn host_line(host: HostId, line: impl Into<Bytes>, end: u64) -> Input {
    let body = Body::Line(line.into());
    Input::Host(host, HostEvent::Output(vec![Frame { end, body }]))
}

/// The head of a process's line over the limit.
pub(crate) fn host_oversized(host: HostId, head: Bytes, len: u64, end: u64) -> Input {
    let body = Body::Oversized { head, len, inside: false };
    Input::Host(host, HostEvent::Output(vec![Frame { end, body }]))
}
