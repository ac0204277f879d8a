//! Lines on their way to an agent.
//!
//! ```text
//!  line ─▶ row on disk ── commit ─▶ written to the process ─▶ row gone
//!            └── while too much waits here, the agent is clogged: nothing is added
//! ```
//!
//! Architecture invariant: nothing is written to an agent that was not on disk before, and all of it is written here.

use std::collections::VecDeque;

use acpd_api::Reason;
use bytes::Bytes;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::process::slots::SlotId;
use crate::ids::HostId;
use crate::input::{Batch, Effect};
use crate::mcp::put_names;
use crate::own::without_own;
use crate::record::{HostState, Record};

/// Bytes that may wait for an agent before requests are refused and notifications dropped.
const UNWRITTEN: usize = 8 << 20;

/// What a process was sent and is not known to have got.
#[derive(Debug)]
pub(crate) struct Outbox {
    next: u64,
    /// Number and length of each line.
    unwritten: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox { next: 1, unwritten: VecDeque::new(), bytes: 0 }
    }

    /// What the last daemon left.
    pub(crate) fn recovered(state: &HostState) -> Outbox {
        let last = state.outbox.last_key_value().map_or(0, |(chunk, _)| *chunk);
        Outbox {
            next: last.max(state.written) + 1,
            unwritten: state.outbox.iter().map(|(chunk, line)| (*chunk, line.len())).collect(),
            bytes: state.outbox.values().map(Bytes::len).sum(),
        }
    }

    /// Whether this line is not known to have been written.
    pub(crate) fn has(&self, chunk: u64) -> bool {
        self.unwritten.iter().any(|(unwritten, _)| *unwritten == chunk)
    }

    /// Takes a line of this length and returns its number.
    fn push(&mut self, len: usize) -> u64 {
        let chunk = self.next;
        self.next += 1;
        self.unwritten.push_back((chunk, len));
        self.bytes += len;
        chunk
    }

    /// All lines up to this one are written.
    fn written(&mut self, chunk: u64) {
        while self.unwritten.front().is_some_and(|(written, _)| *written <= chunk) {
            self.bytes -= self.unwritten.pop_front().map_or(0, |(_, len)| len);
        }
    }
}

impl Hub {
    /// Writes a line to the process: an outbox row first, the write after the commit.
    pub(crate) fn host_write(&mut self, id: SlotId, line: Bytes, out: &mut Batch) -> u64 {
        self.host_write_with(id, line, &[], out)
    }

    /// The same, with the names of MCP servers of the configuration that the daemon adds.
    pub(crate) fn host_write_with(
        &mut self,
        id: SlotId,
        line: Bytes,
        servers: &[String],
        out: &mut Batch,
    ) -> u64 {
        let line = put_names(&without_own(&line), servers);
        let Some(process) = self.slot_mut(id).host.as_mut() else { return 0 };
        let (host, chunk) = (process.id, process.outbox.push(line.len()));
        out.records.push(Record::Outbox { host, chunk, line: line.clone() });
        out.effects.push(Effect::HostWrite { host, chunk, line });
        chunk
    }

    pub(crate) fn on_host_written(&mut self, host: HostId, chunk: u64, out: &mut Batch) {
        let Some(id) = self.hosts.get(&host) else { return };
        out.records.push(Record::Written { host, chunk });
        if let Some(process) = self.slots.get_mut(id).and_then(|agent| agent.host.as_mut()) {
            process.outbox.written(chunk);
        }
    }

    /// The agent does not read what it is sent: nothing more is put into its line.
    pub(crate) fn is_clogged(&self, id: SlotId) -> bool {
        let process = self.slots.get(&id).and_then(|agent| agent.host.as_ref());
        process.is_some_and(|process| process.outbox.bytes > UNWRITTEN)
    }

    /// The error for who would have to wait behind an agent that does not read.
    pub(crate) fn clogged_fault(&self, id: SlotId) -> Fault {
        let agent = &self.slots[&id].profile;
        Fault::new(Reason::TooMany, format!("agent `{agent}` does not read what it is sent"))
            .hint(format!("try again later, or restart it: `acpctl agent restart {agent}`"))
    }
}
