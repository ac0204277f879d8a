//! Tool calls that show commands of acpd: what is seen of these by who cannot look at a terminal.
//!
//! ```text
//!  shown ─▶ look ─▶ its last 4 KiB, if they are news ─▶ 2 s, 4 s, 8 s … 30 s ─▶ look
//!    ├── ended ───▶ its last 16 KiB
//!    └── agent, session or daemon gone ─▶ what was shown last, and why there is no more
//! ```
//!
//! Each step is a `tool_call_update` with the whole content of the call, and a line of the journal like
//! any other: who falls behind, comes back or comes late needs nothing special. What that costs is
//! bounded by the number of steps, their distance and what each shows.
//!
//! Architecture invariant: while a call shows a command that runs, the disk has what is to be said of
//! it if this daemon says no more, its last word. The next daemon says it.

use acp_wire::Message;
use bytes::Bytes;

use crate::client_methods::terminal_mirror::{Place, Step};
use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey, Time};
use crate::input::{Batch, TerminalTail};
use crate::record::{EventKind, InteractionRow, Record};
use crate::session::table::Sessions;

fn place(sessions: &Sessions, key: SessionKey, now: Time) -> Place<'_> {
    let row = &sessions[&key].row;
    Place { key, session: &row.public_id, host: row.host, now }
}

impl Hub {
    /// A tool call of the agent, journalled just now, may show terminals.
    pub(crate) fn terminals_shown(&mut self, key: SessionKey, line: &Bytes, out: &mut Batch) {
        let offered = self.profile_of(self.session(key).slot).services.terminal;
        if !offered && self.terminals.is_empty() {
            return;
        }
        let place = place(&self.sessions, key, self.now);
        let line = self.terminals.show(&place, line, &mut self.ids, &mut self.timers, out);
        if let Some(line) = line {
            self.append(key, EventKind::Update, line, None, out);
        }
    }

    /// Output of a command so far.
    pub(crate) fn on_terminal_seen(
        &mut self,
        number: InteractionId,
        tail: TerminalTail,
        out: &mut Batch,
    ) {
        let Some(key) = self.terminals.session_of(number) else { return };
        let place = place(&self.sessions, key, self.now);
        let steps = self.terminals.seen(&place, number, tail, &mut self.timers);
        self.show_steps(key, steps, out);
    }

    /// A command has ended: that is the last of it.
    pub(crate) fn show_end(&mut self, key: SessionKey, number: InteractionId, out: &mut Batch) {
        let place = place(&self.sessions, key, self.now);
        let steps = self.terminals.show_end(&place, number, &mut self.timers);
        self.show_steps(key, steps, out);
    }

    /// Nothing more is known of the commands of a session, which were ended.
    pub(crate) fn end_shown(&mut self, key: SessionKey, why: &str, out: &mut Batch) {
        let place = place(&self.sessions, key, self.now);
        let steps = self.terminals.end_shown(&place, why);
        self.show_steps(key, steps, out);
    }

    fn show_steps(&mut self, key: SessionKey, steps: Vec<Step>, out: &mut Batch) {
        for Step { line, last_word } in steps {
            if let Some(line) = line {
                self.append(key, EventKind::Update, line, None, out);
            }
            out.records.extend(last_word);
        }
    }

    /// Says what the last daemon would have said; whether the row was that.
    pub(crate) fn say_last_word(&mut self, row: &InteractionRow, out: &mut Batch) -> bool {
        if !matches!(acp_wire::parse(&row.line), Ok(Message::Notification { .. })) {
            return false;
        }
        out.records.push(Record::InteractionGone { id: row.id });
        if let Some(key) = row.session.filter(|key| self.sessions.contains_key(key)) {
            self.append(key, EventKind::Update, row.line.clone(), None, out);
        }
        true
    }
}
