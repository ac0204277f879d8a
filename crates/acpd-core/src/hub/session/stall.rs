//! Notices about turns without output.

use std::fmt;
use std::fmt::Write as _;

use crate::hub::Hub;
use crate::ids::{SessionKey, duration};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn arm_stall(&mut self, key: SessionKey) {
        let notice = self.profile_of(self.session(key).slot).stall_notice;
        if notice > 0 {
            self.cx.timers.set(Timer::Stall(key), self.cx.now.after(notice));
        }
    }

    /// Waiting for the user or for a tool is not silence.
    pub(crate) fn on_stall_timer(&mut self, key: SessionKey) {
        let session = self.session(key);
        let notice = self.profile_of(session.slot).stall_notice;
        let Some(running) = &session.running else { return };
        let silent = self.cx.now.since(running.last_line);
        if self.questions.are_open(key) || !session.row.open_tools.is_empty() || silent < notice {
            let from = if silent < notice { running.last_line } else { self.cx.now };
            return self.cx.timers.set(Timer::Stall(key), from.after(notice));
        }
        let time = duration(silent);
        let mut text = format!(
            "stalled: no output for {time}; the turn continues until it is cancelled: in its client, or \
             with `acpctl cancel {}`",
            session.row.word()
        );
        let since = running.last_line;
        let others = self.sessions.of_slot(session.slot).into_iter().filter(|other| *other != key);
        let newer = others.map(|other| self.session(other)).find(|other| other.held_since >= since);
        if let Some(newer) = newer {
            // Some agents serve one session, and forget the others without a word.
            // Writing to a string does not fail.
            let _: fmt::Result = write!(
                text,
                ". The silence began when the same process got session `{}`: if cancelling and a new prompt \
                 help, set `sharing = \"session\"` for agent `{}`",
                newer.row.word(),
                session.row.agent
            );
        }
        self.notice(key, "warning", &text);
        self.cx.timers.set(Timer::Stall(key), self.cx.now.after(notice));
    }
}
