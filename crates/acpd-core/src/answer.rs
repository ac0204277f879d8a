//! The answer to a request of an agent. Rooms return it, and the hub writes it to the process that asked
//! (`hub/process/outbox.rs`), if that is still there.

use acp_wire::{ErrorObject, Id, build};
use bytes::Bytes;

use crate::ids::HostId;

/// A line for the process that has asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: HostId,
    pub(crate) line: Bytes,
}

impl Answer {
    pub(crate) fn error(host: HostId, id: &Id, error: &ErrorObject) -> Answer {
        Answer { host, line: build::error(id, error) }
    }
}
