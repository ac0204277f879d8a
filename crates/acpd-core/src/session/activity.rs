//! Current work of the running turn, as its agent reports it: the last item that began and has not
//! ended. For display only; not stored.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use acp_wire::lossy_at;
use acpd_api::{Doing, DoingKind};
use bytes::Bytes;

use crate::gist::{add_to_gist, gist, is_full, last_line};
use crate::ids::Time;
use crate::tool_calls::call::Call;
use crate::tool_calls::frozen::doing;

/// Remembered open calls of a turn; the oldest are dropped.
const CALLS: usize = 16;
/// Remembered lines of an answer, and bytes of a line; longer ones are skipped.
const LINES: usize = 32;
const LINE: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) last_line: Option<Time>,
    doing: Option<Step>,
    /// Open calls with the times of their first reports, in this order.
    calls: Vec<(String, Time)>,
}

#[derive(Debug)]
struct Step {
    kind: DoingKind,
    since: Time,
    /// The call, which describes itself.
    call: Option<String>,
    /// The beginning of a thought.
    thought: String,
    /// The last lines of an answer, newest first. They are parsed only when shown.
    written: VecDeque<Bytes>,
}

impl Step {
    fn new(kind: DoingKind, since: Time) -> Step {
        Step { kind, since, call: None, thought: String::new(), written: VecDeque::new() }
    }

    fn of_call((name, since): &(String, Time)) -> Step {
        Step { call: Some(name.clone()), ..Step::new(DoingKind::Tool, *since) }
    }
}

impl Activity {
    pub(crate) fn begin_turn(&mut self, now: Time) {
        self.calls.clear();
        self.doing = Some(Step::new(DoingKind::Starting, now));
    }

    pub(crate) fn end_turn(&mut self) {
        self.calls.clear();
        self.doing = None;
    }

    /// Notes a chunk, to show the beginning of a thought or the last line of an answer.
    pub(crate) fn says(&mut self, kind: DoingKind, now: Time, line: &Bytes) {
        let step = match &mut self.doing {
            Some(step) if step.kind == kind => step,
            doing => doing.insert(Step::new(kind, now)),
        };
        if line.len() > LINE {
            return;
        }
        if kind == DoingKind::Writing {
            step.written.truncate(LINES - 1);
            // A copy, because the line would keep the whole read buffer.
            step.written.push_front(Bytes::copy_from_slice(line));
        } else if !is_full(&step.thought)
            && let Some(text) = text_of(line)
        {
            add_to_gist(&mut step.thought, &text);
        }
    }

    pub(crate) fn calls(&mut self, name: &str, now: Time) {
        let known = self.calls.iter().position(|(call, _)| call == name);
        let at = known.unwrap_or_else(|| {
            if self.calls.len() == CALLS {
                self.calls.remove(0);
            }
            self.calls.push((name.to_owned(), now));
            self.calls.len() - 1
        });
        self.doing = Some(Step::of_call(&self.calls[at]));
    }

    pub(crate) fn call_over(&mut self, name: &str, now: Time) {
        self.calls.retain(|(call, _)| call != name);
        if self.doing.as_ref().is_some_and(|step| step.call.as_deref() == Some(name)) {
            let next = self.calls.last().map(Step::of_call);
            self.doing = next.or_else(|| Some(Step::new(DoingKind::Thinking, now)));
        }
    }

    /// `calls`: the calls of the turn.
    pub(crate) fn doing(&self, calls: &BTreeMap<String, Call>) -> Option<Doing> {
        let Step { kind, since, call, thought, written } = self.doing.as_ref()?;
        let (kind, text) = if let Some(call) = call.as_ref().and_then(|call| calls.get(call)) {
            let (kind, text) = doing(call);
            (kind, gist(&text))
        } else if written.is_empty() {
            (*kind, thought.trim_end().to_owned())
        } else {
            let said: String = written.iter().rev().filter_map(text_of).collect();
            (*kind, last_line(&said))
        };
        Some(Doing { kind, text: text.into(), since: since.0 })
    }
}

fn text_of(line: &Bytes) -> Option<Cow<'_, str>> {
    lossy_at(line, &["params", "update", "content", "text"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Bytes {
        let update =
            serde_json::json!({"params":{"update":{"content":{"type":"text","text":text}}}});
        Bytes::from(update.to_string())
    }

    /// `calls`: ids and descriptions.
    fn shown_with(activity: &Activity, calls: &[(&str, &str)]) -> (DoingKind, String, u64) {
        let calls = calls.iter().map(|(id, update)| {
            let mut call = Call::default();
            call.take(update.as_bytes());
            ((*id).to_owned(), call)
        });
        let Doing { kind, text, since } = activity.doing(&calls.collect()).expect("a turn runs");
        (kind, text.into_raw(), since)
    }

    fn said(kind: DoingKind, text: &str, size: usize) -> Activity {
        let mut activity = Activity::default();
        activity.begin_turn(Time(1));
        for piece in text.chars().collect::<Vec<_>>().chunks(size) {
            activity.says(kind, Time(2), &chunk(&piece.iter().collect::<String>()));
        }
        activity
    }

    #[test]
    fn what_is_said_is_told_from_its_beginning_in_whatever_pieces_it_comes() {
        let text = format!("  a\u{1b}[2J\tb\n\nc{}", "ä".repeat(100));
        for size in [1, 2, 7, 500] {
            let activity = said(DoingKind::Thinking, &text, size);
            let expected = format!("a[2J b c{}…", "ä".repeat(71));
            assert_eq!(expected.chars().count(), Doing::TEXT);
            let (kind, told, since) = shown_with(&activity, &[]);
            assert_eq!((kind, told), (DoingKind::Thinking, expected), "{size}");
            assert!(since == 2);
        }
    }

    #[test]
    fn of_an_answer_the_last_line_is_told_in_whatever_pieces_it_comes() {
        let long = "word ".repeat(40);
        let told = |text: &str, size| shown_with(&said(DoingKind::Writing, text, size), &[]).1;
        for size in [1, 3, 500] {
            assert_eq!(told("Reading\nthe files", size), "the files", "{size}");
            assert_eq!(told("Reading\nthe files\n\n  ", size), "the files", "until more comes");
            let last = told(&format!("first\n{long}the end"), size);
            assert!(last.ends_with("word the end") && !last.contains("first"), "{last}");
            assert!(last.chars().count() <= Doing::TEXT);
        }
    }

    #[test]
    fn a_call_is_shown_until_it_is_over_and_then_the_one_before() {
        let mut activity = Activity::default();
        let calls = [
            ("a", r#"{"kind":"execute","rawInput":{"command":"make"}}"#),
            ("b", r#"{"kind":"read","title":"Read x"}"#),
        ];
        activity.begin_turn(Time(1));
        activity.calls("a", Time(2));
        activity.calls("b", Time(3));
        assert_eq!(shown_with(&activity, &calls), (DoingKind::Tool, "Read x".to_owned(), 3));
        activity.call_over("b", Time(4));
        assert_eq!(shown_with(&activity, &calls), (DoingKind::Command, "make".to_owned(), 2));
        activity.says(DoingKind::Thinking, Time(5), &chunk("hm"));
        activity.calls("a", Time(6));
        assert_eq!(shown_with(&activity, &calls), (DoingKind::Command, "make".to_owned(), 2));
        activity.call_over("a", Time(7));
        assert_eq!(shown_with(&activity, &calls), (DoingKind::Thinking, String::new(), 7));
        activity.end_turn();
        assert_eq!(activity.doing(&BTreeMap::new()), None);
    }
}
