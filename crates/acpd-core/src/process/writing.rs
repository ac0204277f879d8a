//! Writing to agents: each line is a record and an effect, with a number from the outbox of its
//! process.
//!
//! ```text
//!  line ─▶ row on disk ── commit ─▶ written to the process ─▶ row removed
//!            └── too many unwritten bytes: the agent is clogged, and gets no new lines
//! ```
//!
//! Architecture invariant: all lines to agents are written here, and are on disk before.

use acpd_api::Reason;
use bytes::Bytes;

use crate::cx::Cx;
use crate::fault::Fault;
use crate::ids::{HostId, SlotId};
use crate::input::{Effect, ToHost};
use crate::own::without_own;
use crate::process::slot::Slot;
use crate::process::table::Processes;
use crate::record::Record;

/// Unwritten bytes before requests are refused and notifications dropped.
const UNWRITTEN: usize = 8 << 20;

impl Processes {
    /// Writes an outbox row, then the line after the commit. Returns the line's number, or 0
    /// without a process.
    pub(crate) fn write(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        self.write_named(cx, id, without_own(&line))
    }

    /// Like [`Processes::write`], for lines with names of MCP servers, which the daemon resolves.
    pub(crate) fn write_named(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        let Some(process) = self.get_mut(id).and_then(Slot::host_mut) else { return 0 };
        let (host, chunk) = (process.id, process.outbox.push(line.len()));
        cx.record(Record::Outbox { host, chunk, line: line.clone() });
        cx.send(Effect::Host(host, ToHost::Write { chunk, line }));
        chunk
    }

    pub(crate) fn answer(&mut self, cx: &mut Cx, host: HostId, line: Bytes) {
        if let Some(slot) = self.slot_of(host) {
            self.write(cx, slot, line);
        }
    }

    /// Writes a notification. It is dropped if the agent does not read, or the journal fails.
    pub(crate) fn notify(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) {
        if !self.is_clogged(id) && !cx.is_failing() {
            self.write(cx, id, line);
        }
    }

    pub(crate) fn on_written(&mut self, cx: &mut Cx, host: HostId, chunk: u64) {
        let Some(id) = self.slot_of(host) else { return };
        cx.record(Record::Written { host, chunk });
        if let Some(process) = self.get_mut(id).and_then(Slot::host_mut) {
            process.outbox.written(chunk);
        }
    }

    /// Returns whether the agent does not read its lines, so no more are added.
    pub(crate) fn is_clogged(&self, id: SlotId) -> bool {
        let process = self.get(&id).and_then(Slot::host);
        process.is_some_and(|process| process.outbox.bytes > UNWRITTEN)
    }

    pub(crate) fn clogged_fault(&self, id: SlotId) -> Fault {
        let agent = &self[&id].profile;
        Fault::new(Reason::TooMany, format!("agent `{agent}` does not read what it is sent"))
            .hint(format!("try again later, or restart it: `acpctl agent restart {agent}`"))
    }

    /// Returns whether it is unknown if a lost process got this line.
    pub(crate) fn is_undecided(&self, id: SlotId, chunk: u64) -> bool {
        self[&id].host().is_some_and(|host| host.lost && host.outbox.has(chunk))
    }
}
