//! The answer to a request of an agent. Rooms return it, and the hub writes it to the process that asked
//! (`hub/process/outbox.rs`), if that is still there.

use bytes::Bytes;

use crate::ids::HostId;

/// A line for the process that has asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: HostId,
    pub(crate) line: Bytes,
}
