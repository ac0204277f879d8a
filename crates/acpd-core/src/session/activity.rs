//! Current work of the running turn, as its agent reports it: the last item that began and has not
//! ended. For display only; not stored.

use std::borrow::Cow;
use std::collections::VecDeque;

use acp_wire::lossy_at;
use acpd_api::{Doing, DoingKind};
use bytes::Bytes;

use crate::gist::Gist;
use crate::ids::Time;

/// Remembered open calls of a turn; the oldest are dropped.
const CALLS: usize = 16;
/// Remembered lines of an answer, and bytes of a line; longer ones are skipped.
const LINES: usize = 32;
const LINE: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Activity {
    last_line: Option<Time>,
    doing: Option<Step>,
    /// Open calls, in the order of their first reports.
    calls: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    kind: DoingKind,
    gist: Gist,
    /// The last lines of an answer, newest first. They are parsed only when shown.
    written: VecDeque<Bytes>,
    since: Time,
    call: Option<String>,
}

impl Step {
    fn new(kind: DoingKind, since: Time) -> Step {
        Step { kind, gist: Gist::default(), written: VecDeque::new(), since, call: None }
    }
}

impl Activity {
    pub(crate) fn last_line(&self) -> Option<Time> {
        self.last_line
    }

    pub(crate) fn heard(&mut self, now: Time) {
        self.last_line = Some(now);
    }

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
        } else if !step.gist.is_full()
            && let Some(text) = text_of(line)
        {
            step.gist.add(&text);
        }
    }

    /// `about`: the description, if the report has one.
    pub(crate) fn calls(&mut self, name: &str, now: Time, about: Option<(DoingKind, String)>) {
        let known = self.calls.iter().position(|step| step.call.as_deref() == Some(name));
        let at = known.unwrap_or_else(|| {
            if self.calls.len() == CALLS {
                self.calls.remove(0);
            }
            let step = Step::new(DoingKind::Tool, now);
            self.calls.push(Step { call: Some(name.to_owned()), ..step });
            self.calls.len() - 1
        });
        let step = &mut self.calls[at];
        if let Some((kind, text)) = about {
            (step.kind, step.gist) = (kind, Gist::of(&text));
        }
        self.doing = Some(step.clone());
    }

    pub(crate) fn call_over(&mut self, name: &str, now: Time) {
        let is_it = |step: &Step| step.call.as_deref() == Some(name);
        self.calls.retain(|step| !is_it(step));
        if self.doing.as_ref().is_some_and(is_it) {
            let next = self.calls.last().cloned();
            self.doing = next.or_else(|| Some(Step::new(DoingKind::Thinking, now)));
        }
    }

    pub(crate) fn doing(&self) -> Option<Doing> {
        let Step { kind, gist, written, since, .. } = self.doing.as_ref()?;
        let text = if written.is_empty() {
            gist.text().into()
        } else {
            let said: String = written.iter().rev().filter_map(text_of).collect();
            Gist::last_line(&said).text().into()
        };
        Some(Doing { kind: *kind, text, since: since.0 })
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

    fn shown(activity: &Activity) -> (DoingKind, String, u64) {
        let Doing { kind, text, since } = activity.doing().expect("a turn runs");
        (kind, text.into_raw(), since)
    }

    #[test]
    fn what_is_said_is_told_from_its_beginning_in_whatever_pieces_it_comes() {
        let text = format!("  a\u{1b}[2J\tb\n\nc{}", "ä".repeat(100));
        for size in [1, 2, 7, 500] {
            let mut activity = Activity::default();
            activity.begin_turn(Time(1));
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                let piece: String = piece.iter().collect();
                activity.says(DoingKind::Thinking, Time(2), &chunk(&piece));
            }
            let expected = format!("a[2J b c{}…", "ä".repeat(71));
            assert_eq!(expected.chars().count(), Doing::TEXT);
            let (kind, told, since) = shown(&activity);
            assert_eq!((kind, told), (DoingKind::Thinking, expected), "{size}");
            assert!(since == 2);
        }
    }

    #[test]
    fn of_an_answer_the_last_line_is_told_in_whatever_pieces_it_comes() {
        let long = "word ".repeat(40);
        let told = |text: &str, size: usize| {
            let mut activity = Activity::default();
            activity.begin_turn(Time(1));
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                let piece: String = piece.iter().collect();
                activity.says(DoingKind::Writing, Time(2), &chunk(&piece));
            }
            shown(&activity).1
        };
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
        activity.begin_turn(Time(1));
        activity.calls("a", Time(2), Some((DoingKind::Command, "make".to_owned())));
        activity.calls("b", Time(3), Some((DoingKind::Tool, "Read x".to_owned())));
        assert_eq!(shown(&activity), (DoingKind::Tool, "Read x".to_owned(), 3));
        activity.call_over("b", Time(4));
        assert_eq!(shown(&activity), (DoingKind::Command, "make".to_owned(), 2));
        activity.says(DoingKind::Thinking, Time(5), &chunk("hm"));
        // The item continues without a new description.
        activity.calls("a", Time(6), None);
        assert_eq!(shown(&activity), (DoingKind::Command, "make".to_owned(), 2));
        activity.call_over("a", Time(7));
        assert_eq!(shown(&activity), (DoingKind::Thinking, String::new(), 7));
        activity.end_turn();
        assert_eq!(activity.doing(), None);
    }
}
