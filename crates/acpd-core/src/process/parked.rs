//! Lines about sessions that the agent has not named yet, while a `session/new`, an adoption or a
//! restore by `session/new` is open.

use bytes::Bytes;

use crate::cx::Cx;
use crate::ids::{Process, SlotId};
use crate::process::slot::Parked;
use crate::process::table::Processes;
use crate::record::Record;

/// Bytes for new sessions of one process. An adoption has its own limit.
const PARKED_BYTES: usize = 4 << 20;

impl Processes {
    pub(crate) fn park(&mut self, cx: &mut Cx, process: Process, session: &str, line: &Bytes) {
        let parked = &mut self.slot_mut(process.slot).parked;
        parked.entry(session.to_owned()).or_default().push(line.clone());
        let (host, session, line) = (process.host, session.to_owned(), line.clone());
        cx.record(Record::Parked { host, session, line });
    }

    /// Skips a line about an unknown session, for lack of room.
    pub(crate) fn skip(&mut self, cx: &mut Cx, process: Process, session: &str) {
        if let Some(parked) = self.slot_mut(process.slot).parked.get_mut(session) {
            parked.cut();
        }
        cx.note(process.host, &format!("skipped a line for the unknown session `{session}`"));
    }

    pub(crate) fn has_room_for(
        &self,
        id: SlotId,
        len: usize,
        is_new: impl Fn(&str) -> bool,
    ) -> bool {
        let parked = self[&id].parked.iter().filter(|(session, _)| is_new(session));
        parked.map(|(_, parked)| parked.bytes()).sum::<usize>() + len <= PARKED_BYTES
    }

    pub(crate) fn parked(&self, id: SlotId, session: &str) -> Option<&Parked> {
        self[&id].parked.get(session)
    }

    pub(crate) fn parked_mut(&mut self, id: SlotId, session: &str) -> Option<&mut Parked> {
        self.slot_mut(id).parked.get_mut(session)
    }

    pub(crate) fn take_parked(
        &mut self,
        cx: &mut Cx,
        process: Process,
        session: &str,
    ) -> Vec<Bytes> {
        let parked = self.slot_mut(process.slot).parked.remove(session);
        let Some(mut parked) = parked else { return Vec::new() };
        cx.record(Record::Unparked { host: process.host, session: Some(session.to_owned()) });
        parked.take().0
    }

    /// Drops all lines, because no open request can name a session.
    pub(crate) fn drop_parked(&mut self, cx: &mut Cx, process: Process) {
        let parked = std::mem::take(&mut self.slot_mut(process.slot).parked);
        if !parked.is_empty() {
            cx.record(Record::Unparked { host: process.host, session: None });
        }
        for (session, parked) in parked {
            let count = parked.lines().len();
            let text = format!("skipped {count} lines for the unknown session `{session}`");
            cx.note(process.host, &text);
        }
    }
}
