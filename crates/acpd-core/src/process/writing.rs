//! Writing to agents: a line is a record and an effect, with a number from the outbox of its process.

use acpd_api::Reason;
use bytes::Bytes;

use crate::cx::Cx;
use crate::event::Answer;
use crate::fault::Fault;
use crate::ids::{HostId, SlotId};
use crate::input::{Effect, ToHost};
use crate::own::without_own;
use crate::process::slot::Slot;
use crate::process::table::Processes;
use crate::record::Record;

/// Bytes that may wait for an agent before requests are refused and notifications dropped.
const UNWRITTEN: usize = 8 << 20;

impl Processes {
    /// Writes a line to the process of a slot: an outbox row first, the write after the commit. Returns the number of
    /// the line, or 0 if there is no process.
    pub(crate) fn write(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        self.write_named(cx, id, without_own(&line))
    }

    /// Writes a line that may name MCP servers, which the daemon adds.
    pub(crate) fn write_named(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        let Some(process) = self.get_mut(id).and_then(Slot::host_mut) else { return 0 };
        let (host, chunk) = (process.id, process.outbox.push(line.len()));
        cx.record(Record::Outbox { host, chunk, line: line.clone() });
        cx.send(Effect::Host(host, ToHost::Write { chunk, line }));
        chunk
    }

    /// Writes an answer to the process that asked, if it is still there.
    pub(crate) fn answer(&mut self, cx: &mut Cx, answer: Answer) {
        if let Some(slot) = self.slot_of(answer.host) {
            self.write(cx, slot, answer.line);
        }
    }

    pub(crate) fn on_written(&mut self, cx: &mut Cx, host: HostId, chunk: u64) {
        let Some(id) = self.slot_of(host) else { return };
        cx.record(Record::Written { host, chunk });
        if let Some(process) = self.get_mut(id).and_then(Slot::host_mut) {
            process.outbox.written(chunk);
        }
    }

    /// Returns whether the agent does not read what it is sent: nothing more is put into its line.
    pub(crate) fn is_clogged(&self, id: SlotId) -> bool {
        let process = self.get(&id).and_then(Slot::host);
        process.is_some_and(|process| process.outbox.bytes > UNWRITTEN)
    }

    /// Returns the error for requests that would have to wait behind an agent that does not read.
    pub(crate) fn clogged_fault(&self, id: SlotId) -> Fault {
        let agent = &self[&id].profile;
        Fault::new(Reason::TooMany, format!("agent `{agent}` does not read what it is sent"))
            .hint(format!("try again later, or restart it: `acpctl agent restart {agent}`"))
    }

    /// Returns whether a lost process may or may not have got this line.
    pub(crate) fn is_undecided(&self, id: SlotId, chunk: u64) -> bool {
        self[&id].host().is_some_and(|host| host.lost && host.outbox.has(chunk))
    }
}
