//! Tool calls that show commands of acpd: their output for viewers that cannot look at a terminal.
//!
//! ```text
//!  shown ─▶ look ─▶ its last 4 KiB, if they are new ─▶ 2 s, 4 s, 8 s … 30 s ─▶ look
//!    ├── ended ───▶ its last 16 KiB
//!    └── agent, session or daemon gone ─▶ its last output, and why there is no more
//! ```
//!
//! Each step is a `tool_call_update` with the whole content of the call, and a line of the journal like any
//! other, so a client that is late needs nothing special. The cost is bounded by the number of steps, their
//! distance and their size.
//!
//! Architecture invariant: while a call shows a command that runs, the disk has the line that ends it, its
//! last word. The next daemon sends it.

use std::collections::BTreeSet;
use std::mem::take;

use acp_wire::{build, locate, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::ids::{InteractionId, SessionKey};
use crate::input::{Effect, TerminalEnd, TerminalTail};
use crate::record::{InteractionRow, Record, SessionRow};
use crate::services::terminals::{Mirror, Terminals};
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

impl Mirror {
    fn no_last_word(&self) -> Record {
        Record::InteractionGone { id: self.last_word }
    }
}

impl TerminalTail {
    /// Returns the output for a conversation, with `how` below it: the end of the command, or of its output.
    fn shown(&self, how: Option<&str>) -> String {
        let mut text = String::new();
        if self.truncated {
            text.push_str("…\n");
        }
        text.push_str(&self.output);
        let Some(how) = how else { return text };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text + "(" + how + ")"
    }
}

impl TerminalEnd {
    fn shown(&self) -> String {
        let how = match (&self.signal, self.code) {
            (Some(signal), _) => Some(format!("ended by {signal}")),
            (None, Some(code)) if code != 0 => Some(format!("exit code {code}")),
            _ => self.tail.output.is_empty().then(|| "no output".to_owned()),
        };
        self.tail.shown(how.as_deref())
    }
}

impl Terminals {
    /// A tool call of the agent, journalled just now: if it shows terminals of acpd, what is known of
    /// their output is the line to show behind it, and then the rest as it comes.
    pub(crate) fn show(&mut self, cx: &mut Cx, row: &SessionRow, line: &Bytes) -> Option<Bytes> {
        let content = locate(line, &["params", "update", "content"])?;
        let call = str_at(line, &["params", "update", "toolCallId"])?;
        if line[content.clone()] == *b"null" {
            return None;
        }
        // The new content takes the place of the old one.
        let mirror = (row.key, call.clone().into_owned());
        if let Some(before) = self.mirrors.remove(&mirror) {
            cx.record(before.no_last_word());
        }
        let mut own = BTreeSet::new();
        replace_terminals(&line.slice(content.clone()), &[], |_, name| {
            if let Some(TerminalName::Own(number)) = TerminalName::parse(name) {
                own.insert(number);
            }
            None
        });
        if own.is_empty() || content.len() > CONTENT {
            return None;
        }
        // A slice would keep the whole buffer that the line came in.
        let content = Bytes::copy_from_slice(&line[content]);
        let (running, over): (BTreeSet<_>, BTreeSet<_>) = own.into_iter().partition(|number| {
            self.own(*number).is_some_and(|(of, own)| of == row.key && own.end.is_none())
        });
        let running: BTreeSet<_> =
            running.into_iter().filter(|number| self.calls_with(*number).len() < SHOWN).collect();
        if !running.is_empty() {
            for number in &running {
                self.look_soon(cx, *number);
            }
            let last_word = InteractionId(cx.ids.issue());
            let shown = Mirror { content: content.clone(), running, last_word };
            cx.record_all(self.last_word(cx, row, &call, &shown));
            self.mirrors.insert(mirror, shown);
        }
        if over.is_empty() { None } else { self.output_line(row, &call, &content, None) }
    }

    /// Looks at a command as soon as it may be shown again.
    fn look_soon(&mut self, cx: &mut Cx, number: InteractionId) {
        let Some((_, own)) = self.own_mut(number) else { return };
        own.growth.again |= !own.growth.tail.output.is_empty();
        let due = own.growth.looked.after(NEAREST).max(cx.now);
        cx.timers.set(Timer::Terminal(number), due);
    }

    /// Looks at a command, if a tool call shows it.
    pub(crate) fn look(&mut self, cx: &mut Cx, number: InteractionId) {
        let is_shown = !self.calls_with(number).is_empty();
        let Some((_, own)) = self.own_mut(number) else { return };
        if is_shown {
            own.growth.looked = cx.now;
            cx.send(Effect::LookAtTerminal { terminal: number });
        }
    }

    /// Returns the lines that show the output of a command so far.
    pub(crate) fn seen(
        &mut self,
        cx: &mut Cx,
        row: &SessionRow,
        number: InteractionId,
        tail: TerminalTail,
    ) -> Vec<Bytes> {
        let Some((_, own)) = self.own_mut(number).filter(|(_, own)| own.end.is_none()) else {
            return Vec::new();
        };
        let growth = &mut own.growth;
        let is_news = growth.tail != tail;
        let is_shown = take(&mut growth.again) || is_news;
        growth.tail = tail;
        growth.steps += u32::from(is_news);
        growth.looks += 1;
        if growth.steps < STEPS {
            let distance = (NEAREST << growth.looks.min(10)).min(FARTHEST);
            cx.timers.set(Timer::Terminal(number), cx.now.after(distance));
        }
        if !is_shown {
            return Vec::new();
        }
        let calls = self.calls_with(number);
        calls.iter().filter_map(|call| self.step(cx, row, call, &self.mirrors[call])).collect()
    }

    /// Returns the lines that show the end of a command.
    pub(crate) fn show_end(
        &mut self,
        cx: &mut Cx,
        row: &SessionRow,
        number: InteractionId,
    ) -> Vec<Bytes> {
        cx.timers.clear(Timer::Terminal(number));
        let mut lines = Vec::new();
        for call in self.calls_with(number) {
            let Some(mut shown) = self.mirrors.remove(&call) else { continue };
            shown.running.remove(&number);
            if shown.running.is_empty() {
                cx.record(shown.no_last_word());
                lines.extend(self.output_line(row, &call.1, &shown.content, None));
            } else {
                lines.extend(self.step(cx, row, &call, &shown));
                self.mirrors.insert(call, shown);
            }
        }
        lines
    }

    /// Returns the last lines about the commands of a session, which were ended, with the reason.
    pub(crate) fn end_mirrors(&mut self, cx: &mut Cx, row: &SessionRow, why: &str) -> Vec<Bytes> {
        let mirrors = self.mirrors.extract_if(.., |(of, _), _| *of == row.key);
        let mirrors: Vec<_> = mirrors.collect();
        cx.record_all(mirrors.iter().map(|(_, shown)| shown.no_last_word()));
        let lines = mirrors.iter().filter_map(|((_, call), shown)| {
            self.output_line(row, call, &shown.content, Some(why))
        });
        lines.collect()
    }

    /// Returns the line for a call, and keeps its last word.
    fn step(
        &self,
        cx: &mut Cx,
        row: &SessionRow,
        (_, call): &(SessionKey, String),
        shown: &Mirror,
    ) -> Option<Bytes> {
        cx.record_all(self.last_word(cx, row, call, shown));
        self.output_line(row, call, &shown.content, None)
    }

    fn last_word(
        &self,
        cx: &Cx,
        session: &SessionRow,
        call: &str,
        shown: &Mirror,
    ) -> Option<Record> {
        let why = Some("ended when acpd was restarted");
        let line = self.output_line(session, call, &shown.content, why)?;
        let (id, host) = (shown.last_word, session.host?);
        let session = Some(session.key);
        Some(Record::Interaction(InteractionRow {
            id,
            session,
            host,
            line,
            at: cx.now,
            frozen: None,
        }))
    }

    /// The tool calls that show a command that runs. They are all of its session.
    fn calls_with(&self, number: InteractionId) -> Vec<(SessionKey, String)> {
        let shown = self.mirrors.iter().filter(|(_, call)| call.running.contains(&number));
        shown.map(|(of, _)| of.clone()).collect()
    }

    /// The content of a tool call with the output of its terminals, each shown once, however often the
    /// call names it; `why` is why no more comes of those that have not ended.
    fn output_line(
        &self,
        row: &SessionRow,
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
            let own = self.own(number).filter(|(of, _)| *of == row.key).map(|(_, own)| own);
            let text = match own {
                Some(own) => match (&own.end, &own.growth.tail) {
                    (Some(end), _) => end.shown(),
                    // No output yet: the view already shows that there is a terminal.
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
        let params = json!({ "sessionId": row.public_id, "update": update });
        Some(build::notification("session/update", &params))
    }
}
