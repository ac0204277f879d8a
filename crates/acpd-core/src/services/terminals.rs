//! Terminals of agents, run by an editor or by acpd, and the output of acpd's commands in tool
//! calls, for viewers that cannot show a terminal.
//!
//! ```text
//!  shown ─▶ read ─▶ the last 4 KiB, if they are new ─▶ 2 s, 4 s, 8 s … 30 s ─▶ read
//!    ├── ended ───▶ the last 16 KiB
//!    └── agent, session or daemon gone ─▶ the last output, and why no more follows
//! ```
//!
//! Each step is a journalled `tool_call_update` with the whole content of the call, so late clients
//! need nothing special. The number, interval and size of the steps are limited.
//!
//! Architecture invariant: while a call shows a running command, its final update is on disk. The
//! next daemon sends it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use acp_wire::acp::Services;
use acp_wire::bound::LONGEST_ID;
use acp_wire::{ErrorObject, build, code, locate, set_member, str_at};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::ids::{ClientId, InteractionId, SessionKey, Time};
use crate::input::{Effect, TerminalEnd, TerminalTail};
use crate::record::{EventKind, InteractionRow, Row, RowId, SessionRow};
use crate::services::AgentServices;
use crate::timers::Timer;
use crate::views::{TerminalName, replace_terminals, text_item};

/// Remembered terminals of one session.
const MOST: usize = 64;
/// Tool calls that are updated for one command.
const SHOWN: usize = 4;
/// Maximum length of a tool call's content in bytes.
const CONTENT: usize = 16 << 10;
/// Output of all commands in one step of a tool call, in bytes.
const OUTPUT: usize = 64 << 10;
/// Minimum time between two steps (ms).
const NEAREST: u64 = 1_000;
/// Maximum time between two steps (ms).
const FARTHEST: u64 = 30_000;
/// Steps of one command, about an hour at the maximum interval. Then only the end is shown.
const STEPS: u32 = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalCall {
    Output,
    Wait,
    Kill,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Client(ClientId),
    Acpd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    Write,
    Terminal,
    Call(TerminalCall),
    /// A method of the agent's own, which only a client can know.
    Extension,
}

impl RequestKind {
    pub(crate) fn of(method: &str) -> Option<RequestKind> {
        match method {
            "fs/read_text_file" => Some(RequestKind::Read),
            "fs/write_text_file" => Some(RequestKind::Write),
            "terminal/create" => Some(RequestKind::Terminal),
            "terminal/output" => Some(RequestKind::Call(TerminalCall::Output)),
            "terminal/wait_for_exit" => Some(RequestKind::Call(TerminalCall::Wait)),
            "terminal/kill" => Some(RequestKind::Call(TerminalCall::Kill)),
            "terminal/release" => Some(RequestKind::Call(TerminalCall::Release)),
            method if method.starts_with('_') => Some(RequestKind::Extension),
            _ => None,
        }
    }
}

/// A terminal of an editor or of acpd. Its name says which.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    pub(super) session: SessionKey,
    /// acpd's: the agent has released it.
    pub(super) released: bool,
    /// acpd's: the command has ended.
    pub(super) end: Option<TerminalEnd>,
    pub(super) tail: TerminalTail,
    pub(super) looked: Time,
    pub(super) looks: u32,
    pub(super) steps: u32,
    /// A repeated call lacks the output that was shown before.
    pub(super) again: bool,
}

#[derive(Debug)]
pub(super) struct Mirror {
    /// Content from the agent.
    pub(super) content: Bytes,
    pub(super) running: BTreeSet<InteractionId>,
    /// The row of its final update.
    pub(super) last_word: InteractionId,
}

/// Tool calls that show running commands, by session and id.
pub(super) type Mirrors = BTreeMap<(SessionKey, String), Mirror>;

impl AgentServices {
    /// Drops unused terminals. `is_there`: the editor is attached to the session.
    ///
    /// # Errors
    /// When all are needed.
    pub(super) fn make_room_for_terminal(
        &mut self,
        key: SessionKey,
        is_there: impl Fn(u64) -> bool,
    ) -> Result<(), ErrorObject> {
        let of_session = self.terminals.iter().filter(|(_, terminal)| terminal.session == key);
        if of_session.clone().count() < MOST {
            return Ok(());
        }
        let is_over = |(name, terminal): &(&String, &Terminal)| match TerminalName::parse(name) {
            // A running command is shown until its end.
            Some(TerminalName::Own(_)) => terminal.released && terminal.end.is_some(),
            Some(TerminalName::Editor { editor, .. }) => !is_there(editor),
            None => true,
        };
        match of_session.clone().find(is_over).map(|(name, _)| name.clone()) {
            Some(name) => {
                self.terminals.remove(&name);
                Ok(())
            }
            None if of_session.filter(|(_, terminal)| !terminal.released).count() < MOST => Ok(()),
            None => {
                let text = format!(
                    "this session has {MOST} terminals, which is the limit; release those that are not needed any more"
                );
                Err(ErrorObject::new(code::INTERNAL, text))
            }
        }
    }

    /// Returns the answer with the agent's id of the terminal.
    pub(super) fn terminal_made_by_editor(
        &mut self,
        key: SessionKey,
        editor: u64,
        line: &Bytes,
    ) -> Bytes {
        let id = str_at(line, &["result", "terminalId"]).filter(|id| id.len() <= LONGEST_ID);
        let Some(id) = id else { return line.clone() };
        let name = TerminalName::Editor { editor, id: &id }.to_string();
        let line = set_member(line, &["result", "terminalId"], json!(name).to_string().as_bytes());
        self.terminals.insert(name, Terminal { session: key, ..Terminal::default() });
        line
    }

    pub(super) fn own(&self, number: InteractionId) -> Option<&Terminal> {
        self.terminals.get(&TerminalName::Own(number).to_string())
    }

    pub(super) fn own_mut(&mut self, number: InteractionId) -> Option<&mut Terminal> {
        self.terminals.get_mut(&TerminalName::Own(number).to_string())
    }

    pub(crate) fn may_show_terminals(&self, offers: Services) -> bool {
        offers.terminal || !self.terminals.is_empty()
    }

    /// Handles a tool call that is in the journal already.
    pub(crate) fn on_tool_call(&mut self, cx: &mut Cx, row: &SessionRow, line: &Bytes) {
        let line = self.show(cx, row, line);
        update(cx, row.key, line);
    }

    /// Returns the known output of the commands.
    fn show(&mut self, cx: &mut Cx, row: &SessionRow, line: &Bytes) -> Option<Bytes> {
        let content = locate(line, &["params", "update", "content"])?;
        let call = str_at(line, &["params", "update", "toolCallId"])?;
        if line[content.clone()] == *b"null" {
            return None;
        }
        let mirror = (row.key, call.clone().into_owned());
        if let Some(before) = self.mirrors.remove(&mirror) {
            cx.delete(RowId::Interaction(before.last_word));
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
        // A copy, because a slice would keep the whole read buffer.
        let content = Bytes::copy_from_slice(&line[content]);
        let (running, over): (BTreeSet<_>, BTreeSet<_>) = own.into_iter().partition(|number| {
            self.own(*number).is_some_and(|own| own.session == row.key && own.end.is_none())
        });
        let running: BTreeSet<_> =
            running.into_iter().filter(|number| self.calls_with(*number).len() < SHOWN).collect();
        if !running.is_empty() {
            for number in &running {
                let Some(own) = self.own_mut(*number) else { continue };
                own.again |= !own.tail.output.is_empty();
                let due = own.looked.after(NEAREST).max(cx.now);
                cx.timers.set(Timer::Terminal(*number), due);
            }
            let last_word = InteractionId(cx.ids.issue());
            let shown = Mirror { content: content.clone(), running, last_word };
            self.save_last_word(cx, row, &call, &shown);
            self.mirrors.insert(mirror, shown);
        }
        if over.is_empty() { None } else { self.output_line(row, &call, &content, None) }
    }

    pub(crate) fn on_terminal_deadline(&mut self, cx: &mut Cx, number: InteractionId) {
        let is_shown = !self.calls_with(number).is_empty();
        let Some(own) = self.own_mut(number) else { return };
        if is_shown {
            own.looked = cx.now;
            cx.send(Effect::LookAtTerminal(number));
        }
    }

    pub(crate) fn on_terminal_output<'r>(
        &mut self,
        cx: &mut Cx,
        row: impl FnOnce(SessionKey) -> &'r SessionRow,
        number: InteractionId,
        tail: TerminalTail,
    ) {
        let Some(own) = self.own_mut(number).filter(|own| own.end.is_none()) else { return };
        let row = row(own.session);
        let is_news = own.tail != tail;
        let is_shown = take(&mut own.again) || is_news;
        own.tail = tail;
        own.steps += u32::from(is_news);
        own.looks += 1;
        if own.steps < STEPS {
            let distance = (NEAREST << own.looks.min(10)).min(FARTHEST);
            cx.timers.set(Timer::Terminal(number), cx.now.after(distance));
        }
        if is_shown {
            for call in self.calls_with(number) {
                let line = self.step(cx, row, &call, &self.mirrors[&call]);
                update(cx, row.key, line);
            }
        }
    }

    pub(super) fn show_end(&mut self, cx: &mut Cx, row: &SessionRow, number: InteractionId) {
        cx.timers.clear(Timer::Terminal(number));
        for call in self.calls_with(number) {
            let Some(mut shown) = self.mirrors.remove(&call) else { continue };
            shown.running.remove(&number);
            let line = if shown.running.is_empty() {
                cx.delete(RowId::Interaction(shown.last_word));
                self.output_line(row, &call.1, &shown.content, None)
            } else {
                let line = self.step(cx, row, &call, &shown);
                self.mirrors.insert(call, shown);
                line
            };
            update(cx, row.key, line);
        }
    }

    /// `why`: the reason in the last updates.
    pub(crate) fn end_mirrors(&mut self, cx: &mut Cx, row: &SessionRow, why: &str) -> Vec<Bytes> {
        let mirrors = self.mirrors.extract_if(.., |(of, _), _| *of == row.key);
        let mirrors: Vec<_> = mirrors.collect();
        for (_, shown) in &mirrors {
            cx.delete(RowId::Interaction(shown.last_word));
        }
        let lines = mirrors.iter().filter_map(|((_, call), shown)| {
            self.output_line(row, call, &shown.content, Some(why))
        });
        lines.collect()
    }

    fn step(
        &self,
        cx: &mut Cx,
        row: &SessionRow,
        (_, call): &(SessionKey, String),
        shown: &Mirror,
    ) -> Option<Bytes> {
        self.save_last_word(cx, row, call, shown);
        self.output_line(row, call, &shown.content, None)
    }

    fn save_last_word(&self, cx: &mut Cx, row: &SessionRow, call: &str, shown: &Mirror) {
        let why = Some("ended when acpd was restarted");
        let line = self.output_line(row, call, &shown.content, why);
        let (Some(line), Some(host)) = (line, row.host) else { return };
        let (id, session, at) = (shown.last_word, Some(row.key), cx.now);
        cx.put(Row::Interaction(InteractionRow {
            id,
            session,
            host,
            line,
            original: None,
            at,
            frozen: None,
        }));
    }

    /// Returns the tool calls that show a command. All belong to its session.
    fn calls_with(&self, number: InteractionId) -> Vec<(SessionKey, String)> {
        let shown = self.mirrors.iter().filter(|(_, call)| call.running.contains(&number));
        shown.map(|(of, _)| of.clone()).collect()
    }

    /// Shows each terminal once. `why`: the reason why running ones give no more output.
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
            let text = match self.own(number).filter(|own| own.session == row.key) {
                Some(own) => match (&own.end, &own.tail) {
                    (Some(end), _) => end.shown(),
                    // The view shows terminals without output itself.
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

pub(crate) fn own_terminal(line: &[u8]) -> Option<InteractionId> {
    match TerminalName::parse(&str_at(line, &["params", "terminalId"])?)? {
        TerminalName::Own(number) => Some(number),
        TerminalName::Editor { .. } => None,
    }
}

pub(super) fn exit_status(end: &TerminalEnd) -> Value {
    json!({ "exitCode": end.code, "signal": end.signal })
}

pub(crate) fn unknown(name: &str) -> ErrorObject {
    let text = format!("the terminal `{name}` does not exist or was released");
    ErrorObject::new(code::NOT_FOUND, text)
}

impl TerminalTail {
    /// `how`: the end of the command, or of its output.
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

fn update(cx: &mut Cx, session: SessionKey, line: Option<Bytes>) {
    let kind = EventKind::Update;
    cx.report_all(line.map(|line| EngineEvent::SessionLine { session, kind, line }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written_and_others_are_no_names() {
        let editor = TerminalName::Editor { editor: (3 << 32) | 7, id: "term-1-ü" };
        for name in [TerminalName::Own(InteractionId((2 << 32) | 9)), editor] {
            assert_eq!(TerminalName::parse(&name.to_string()), Some(name));
        }
        for other in ["", "term_1", "acpd-", "acpd-1", "editor-1-2", "editor-x-2-t", "editor-0-0-t"]
        {
            assert_eq!(TerminalName::parse(other), None, "{other}");
        }
    }
}
