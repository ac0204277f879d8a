//! Writing a line to an agent: it is a record and an effect, with a number from the slot's outbox. Everything
//! that speaks to an agent comes through here.

use acpd_api::Reason;
use bytes::Bytes;

use crate::event::Answer;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{HostId, SlotId};
use crate::input::{Batch, Effect, ToHost};
use crate::mcp::{Brought, put_names};
use crate::own::without_own;
use crate::record::Record;

/// Bytes that may wait for an agent before requests are refused and notifications dropped.
const UNWRITTEN: usize = 8 << 20;

impl Hub {
    /// Writes an answer to the process that asked, if it is still there.
    pub(crate) fn write_answer(&mut self, answer: Option<Answer>, out: &mut Batch) {
        let Some(Answer { host, line }) = answer else { return };
        if let Some(slot) = self.processes.slot_of(host) {
            self.host_write(slot, line, out);
        }
    }

    /// Writes a line to the process: an outbox row first, the write after the commit.
    pub(crate) fn host_write(&mut self, id: SlotId, line: Bytes, out: &mut Batch) -> u64 {
        self.host_write_with(id, line, &Brought::default(), out)
    }

    /// Like [`Hub::host_write`], with the names of configured MCP servers that the daemon adds.
    pub(crate) fn host_write_with(
        &mut self,
        id: SlotId,
        line: Bytes,
        servers: &Brought,
        out: &mut Batch,
    ) -> u64 {
        let line = put_names(&without_own(&line), servers);
        let Some(process) = self.slot_mut(id).host_mut() else { return 0 };
        let (host, chunk) = (process.id, process.outbox.push(line.len()));
        out.records.push(Record::Outbox { host, chunk, line: line.clone() });
        out.effects.push(Effect::Host(host, ToHost::Write { chunk, line }));
        chunk
    }

    pub(crate) fn on_host_written(&mut self, host: HostId, chunk: u64, out: &mut Batch) {
        let Some(id) = self.processes.slot_of(host) else { return };
        out.records.push(Record::Written { host, chunk });
        if let Some(process) = self.slot_mut(id).host_mut() {
            process.outbox.written(chunk);
        }
    }

    /// The agent does not read what it is sent: nothing more is put into its line.
    pub(crate) fn is_clogged(&self, id: SlotId) -> bool {
        let process = self.processes.get(&id).and_then(|agent| agent.host());
        process.is_some_and(|process| process.outbox.bytes > UNWRITTEN)
    }

    /// The error for who would have to wait behind an agent that does not read.
    pub(crate) fn clogged_fault(&self, id: SlotId) -> Fault {
        let agent = &self.processes[&id].profile;
        Fault::new(Reason::TooMany, format!("agent `{agent}` does not read what it is sent"))
            .hint(format!("try again later, or restart it: `acpctl agent restart {agent}`"))
    }
}
