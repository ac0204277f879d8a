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

use std::collections::BTreeSet;
use std::mem::take;

use acp_wire::{Message, build, locate, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client_methods::terminal_mirror::Mirror;
use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey};
use crate::input::{Batch, Effect, TerminalTail};
use crate::record::{EventKind, InteractionRow, Record};
use crate::timers::Timer;
use crate::views::terminal_name::TerminalName;
use crate::views::{replace_terminals, text_item};

/// Tool calls that show the same command and are followed.
const SHOWN: usize = 4;

/// The longest content of a tool call that is kept for that, in bytes.
const CONTENT: usize = 16 << 10;

/// The most output that one step of a tool call shows of all its commands, in bytes.
const OUTPUT: usize = 64 << 10;

/// The least time between two steps (ms).
const NEAREST: u64 = 1_000;

/// The time between two looks at a command that runs for long (ms).
const FARTHEST: u64 = 30_000;

/// Steps of one command, an hour of them at the greatest distance; then only its end is shown.
const STEPS: u32 = 120;

impl Hub {
    /// A tool call of the agent, journalled just now: if it shows terminals of acpd, what is known of
    /// their output is shown behind it, and then the rest as it comes.
    pub(crate) fn terminals_shown(&mut self, key: SessionKey, line: &Bytes, out: &mut Batch) {
        let offered = self.profile_of(self.session(key).slot).services.terminal;
        if !offered && self.terminals.is_empty() {
            return;
        }
        let Some(content) = locate(line, &["params", "update", "content"]) else { return };
        let Some(call) = str_at(line, &["params", "update", "toolCallId"]) else { return };
        if line[content.clone()] == *b"null" {
            return;
        }
        // The new content takes the place of the old one.
        self.forget_call(key, &call, out);
        let mut own = BTreeSet::new();
        replace_terminals(&line.slice(content.clone()), &[], |_, name| {
            if let Some(TerminalName::Own(number)) = TerminalName::parse(name) {
                own.insert(number);
            }
            None
        });
        if own.is_empty() || content.len() > CONTENT {
            return;
        }
        // A slice would keep the whole buffer that the line came in.
        let content = Bytes::copy_from_slice(&line[content]);
        let (running, over): (BTreeSet<_>, BTreeSet<_>) = own.into_iter().partition(|number| {
            self.own(*number).is_some_and(|(of, own)| of == key && own.end.is_none())
        });
        let running: BTreeSet<_> =
            running.into_iter().filter(|number| self.calls_with(*number).len() < SHOWN).collect();
        if !running.is_empty() {
            for number in &running {
                self.look_soon(*number);
            }
            let last_word = InteractionId(self.ids.issue());
            let shown = Mirror { content: content.clone(), running, last_word };
            self.shown.insert((key, call.clone().into_owned()), shown);
            self.keep_last_word(key, &call, out);
        }
        if !over.is_empty() {
            self.show_output(key, &call, &content, None, out);
        }
    }

    /// Looks at a command as soon as it may be shown again.
    fn look_soon(&mut self, number: InteractionId) {
        let now = self.now;
        let Some((_, own)) = self.own_mut(number) else { return };
        own.growth.again |= !own.growth.tail.output.is_empty();
        let due = own.growth.looked.after(NEAREST).max(now);
        self.timers.set(Timer::Terminal(number), due);
    }

    /// It is time to look at a command.
    pub(crate) fn on_terminal_timer(&mut self, number: InteractionId, out: &mut Batch) {
        let (now, is_shown) = (self.now, !self.calls_with(number).is_empty());
        let Some((_, own)) = self.own_mut(number) else { return };
        if is_shown {
            own.growth.looked = now;
            out.effects.push(Effect::LookAtTerminal { terminal: number });
        }
    }

    /// What a command has written so far.
    pub(crate) fn on_terminal_seen(
        &mut self,
        number: InteractionId,
        tail: TerminalTail,
        out: &mut Batch,
    ) {
        let now = self.now;
        let Some((_, own)) = self.own_mut(number).filter(|(_, own)| own.end.is_none()) else {
            return;
        };
        let growth = &mut own.growth;
        let is_news = growth.tail != tail;
        let is_shown = take(&mut growth.again) || is_news;
        growth.tail = tail;
        growth.steps += u32::from(is_news);
        growth.looks += 1;
        if growth.steps < STEPS {
            let distance = (NEAREST << growth.looks.min(10)).min(FARTHEST);
            self.timers.set(Timer::Terminal(number), now.after(distance));
        }
        if is_shown {
            for (key, call) in self.calls_with(number) {
                let content = self.shown[&(key, call.clone())].content.clone();
                self.show_output(key, &call, &content, None, out);
                self.keep_last_word(key, &call, out);
            }
        }
    }

    /// A command has ended: that is the last of it.
    pub(crate) fn show_end(&mut self, number: InteractionId, out: &mut Batch) {
        self.timers.clear(Timer::Terminal(number));
        for (key, call) in self.calls_with(number) {
            let Some(shown) = self.shown.get_mut(&(key, call.clone())) else { continue };
            shown.running.remove(&number);
            let (content, is_over) = (shown.content.clone(), shown.running.is_empty());
            self.show_output(key, &call, &content, None, out);
            if is_over {
                self.forget_call(key, &call, out);
            } else {
                self.keep_last_word(key, &call, out);
            }
        }
    }

    /// Nothing more is known of the commands of a session, which were ended.
    pub(crate) fn end_shown(&mut self, key: SessionKey, why: &str, out: &mut Batch) {
        let calls = self.shown.extract_if(.., |(of, _), _| *of == key);
        for ((_, call), shown) in calls.collect::<Vec<_>>() {
            self.show_output(key, &call, &shown.content, Some(why), out);
            out.records.push(Record::InteractionGone { id: shown.last_word });
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

    fn keep_last_word(&mut self, key: SessionKey, call: &str, out: &mut Batch) {
        let Some(shown) = self.shown.get(&(key, call.to_owned())) else { return };
        let why = Some("ended when acpd was restarted");
        let Some(line) = self.output_line(key, call, &shown.content, why) else { return };
        let Some(host) = self.session(key).row.host else { return };
        let (id, session, at) = (shown.last_word, Some(key), self.now);
        let row = InteractionRow { id, session, host, line, at, frozen: None };
        out.records.push(Record::Interaction(row));
    }

    fn forget_call(&mut self, key: SessionKey, call: &str, out: &mut Batch) {
        if let Some(shown) = self.shown.remove(&(key, call.to_owned())) {
            out.records.push(Record::InteractionGone { id: shown.last_word });
        }
    }

    /// The tool calls that show a command that runs.
    fn calls_with(&self, number: InteractionId) -> Vec<(SessionKey, String)> {
        let shown = self.shown.iter().filter(|(_, call)| call.running.contains(&number));
        shown.map(|(of, _)| of.clone()).collect()
    }

    /// Journals the content of a tool call with the output of its terminals; `why` is why no more
    /// comes of those that have not ended.
    fn show_output(
        &mut self,
        key: SessionKey,
        call: &str,
        content: &Bytes,
        why: Option<&str>,
        out: &mut Batch,
    ) {
        if let Some(line) = self.output_line(key, call, content, why) {
            self.append(key, EventKind::Update, line, None, out);
        }
    }

    /// Each terminal is shown once, however often the call names it.
    fn output_line(
        &self,
        key: SessionKey,
        call: &str,
        content: &Bytes,
        why: Option<&str>,
    ) -> Option<Bytes> {
        let (mut seen, mut room) = (BTreeSet::new(), OUTPUT);
        let content = replace_terminals(content, &[], |_, name| {
            let TerminalName::Own(number) = TerminalName::parse(name)? else { return None };
            if !seen.insert(number) {
                return Some(text_item("(a terminal that is shown above)"));
            }
            let own = self.own(number).filter(|(of, _)| *of == key).map(|(_, own)| own);
            let text = match own {
                Some(own) => match (&own.end, &own.growth.tail) {
                    (Some(end), _) => end.shown(),
                    // That it is there says the view.
                    (None, tail) if why.is_none() && tail.output.is_empty() => return None,
                    (None, tail) => tail.shown(why),
                },
                None => "(a terminal of acpd that is gone)".to_owned(),
            };
            match room.checked_sub(text.len()) {
                Some(rest) => room = rest,
                None => return Some(text_item("(too much output to show all of it here)")),
            }
            Some(text_item(&text))
        });
        let content = serde_json::from_slice::<&RawValue>(&content).ok()?;
        let update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "content": content });
        let params = json!({ "sessionId": self.session(key).row.public_id, "update": update });
        Some(build::notification("session/update", &params))
    }
}
