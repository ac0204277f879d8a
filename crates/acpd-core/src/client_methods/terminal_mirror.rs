//! Output of running commands in tool calls, and the shown part of each. The hub journals the lines
//! that it gets from here; the diagram is in `hub/services/terminal_mirror.rs`.

use std::collections::BTreeSet;
use std::mem::take;

use acp_wire::{build, locate, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client_methods::terminal::{Mirror, Terminals};
use crate::ids::{HostId, IdSource, InteractionId, SessionKey, Time};
use crate::input::{Batch, Effect, TerminalEnd, TerminalTail};
use crate::record::{InteractionRow, Record};
use crate::timers::{Timer, Timers};
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
    /// As it is shown in a conversation, with what there is to say about the command itself.
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

/// The session in which a command is shown.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) key: SessionKey,
    pub(crate) session: &'a str,
    /// The process that holds it.
    pub(crate) host: Option<HostId>,
    pub(crate) now: Time,
}

/// A step of a tool call.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: Option<Bytes>,
    /// The last stored text from then on.
    pub(crate) last_word: Option<Record>,
}

impl Terminals {
    /// A tool call of the agent, journalled just now: if it shows terminals of acpd, what is known of
    /// their output is the line to show behind it, and then the rest as it comes.
    pub(crate) fn show(
        &mut self,
        place: &Place<'_>,
        line: &Bytes,
        ids: &mut IdSource,
        timers: &mut Timers,
        out: &mut Batch,
    ) -> Option<Bytes> {
        let content = locate(line, &["params", "update", "content"])?;
        let call = str_at(line, &["params", "update", "toolCallId"])?;
        if line[content.clone()] == *b"null" {
            return None;
        }
        // The new content takes the place of the old one.
        let mirror = (place.key, call.clone().into_owned());
        if let Some(before) = self.mirrors.remove(&mirror) {
            out.records.push(before.no_last_word());
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
            self.own(*number).is_some_and(|(of, own)| of == place.key && own.end.is_none())
        });
        let running: BTreeSet<_> =
            running.into_iter().filter(|number| self.calls_with(*number).len() < SHOWN).collect();
        if !running.is_empty() {
            for number in &running {
                self.look_soon(*number, place.now, timers);
            }
            let last_word = InteractionId(ids.issue());
            let shown = Mirror { content: content.clone(), running, last_word };
            out.records.extend(self.last_word(place, &call, &shown));
            self.mirrors.insert(mirror, shown);
        }
        if over.is_empty() { None } else { self.output_line(place, &call, &content, None) }
    }

    /// Looks at a command as soon as it may be shown again.
    fn look_soon(&mut self, number: InteractionId, now: Time, timers: &mut Timers) {
        let Some((_, own)) = self.own_mut(number) else { return };
        own.growth.again |= !own.growth.tail.output.is_empty();
        let due = own.growth.looked.after(NEAREST).max(now);
        timers.set(Timer::Terminal(number), due);
    }

    /// The time to look at a command.
    pub(crate) fn look(&mut self, number: InteractionId, now: Time, out: &mut Batch) {
        let is_shown = !self.calls_with(number).is_empty();
        let Some((_, own)) = self.own_mut(number) else { return };
        if is_shown {
            own.growth.looked = now;
            out.effects.push(Effect::LookAtTerminal { terminal: number });
        }
    }

    /// Output of a command so far.
    pub(crate) fn seen(
        &mut self,
        place: &Place<'_>,
        number: InteractionId,
        tail: TerminalTail,
        timers: &mut Timers,
    ) -> Vec<Step> {
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
            timers.set(Timer::Terminal(number), place.now.after(distance));
        }
        if !is_shown {
            return Vec::new();
        }
        let calls = self.calls_with(number);
        calls.iter().map(|call| self.step(place, call, &self.mirrors[call])).collect()
    }

    /// A command has ended: that is the last of it.
    pub(crate) fn show_end(
        &mut self,
        place: &Place<'_>,
        number: InteractionId,
        timers: &mut Timers,
    ) -> Vec<Step> {
        timers.clear(Timer::Terminal(number));
        let mut steps = Vec::new();
        for call in self.calls_with(number) {
            let Some(mut shown) = self.mirrors.remove(&call) else { continue };
            shown.running.remove(&number);
            if shown.running.is_empty() {
                let line = self.output_line(place, &call.1, &shown.content, None);
                steps.push(Step { line, last_word: Some(shown.no_last_word()) });
            } else {
                steps.push(self.step(place, &call, &shown));
                self.mirrors.insert(call, shown);
            }
        }
        steps
    }

    /// Nothing more is known of the commands of a session, which were ended; `why` is said.
    pub(crate) fn end_shown(&mut self, place: &Place<'_>, why: &str) -> Vec<Step> {
        let calls = self.mirrors.extract_if(.., |(of, _), _| *of == place.key);
        let calls: Vec<_> = calls.collect();
        let step = |((_, call), shown): ((SessionKey, String), Mirror)| Step {
            line: self.output_line(place, &call, &shown.content, Some(why)),
            last_word: Some(shown.no_last_word()),
        };
        calls.into_iter().map(step).collect()
    }

    /// Returns the shown content of a call, and its final one.
    fn step(&self, place: &Place<'_>, (_, call): &(SessionKey, String), shown: &Mirror) -> Step {
        Step {
            line: self.output_line(place, call, &shown.content, None),
            last_word: self.last_word(place, call, shown),
        }
    }

    fn last_word(&self, place: &Place<'_>, call: &str, shown: &Mirror) -> Option<Record> {
        let why = Some("ended when acpd was restarted");
        let line = self.output_line(place, call, &shown.content, why)?;
        let (id, session, at) = (shown.last_word, Some(place.key), place.now);
        let row = InteractionRow { id, session, host: place.host?, line, at, frozen: None };
        Some(Record::Interaction(row))
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
        place: &Place<'_>,
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
            let own = self.own(number).filter(|(of, _)| *of == place.key).map(|(_, own)| own);
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
        let params = json!({ "sessionId": place.session, "update": update });
        Some(build::notification("session/update", &params))
    }
}
