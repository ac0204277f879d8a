//! Summaries and transcripts of a session, for an agent that has lost it. A summary has a few KiB:
//! the last request, the messages during its turn, and the end of the last answer. A transcript has
//! up to 64 KiB of the conversation. The journal is read backwards, a piece at a time.

use acp_wire::{locate, lossy_at, str_at};
use acpd_api::{NAMESPACE, method};
use acpd_core::GO_ON;
use acpd_core::ids::{Seq, SessionKey};
use acpd_core::profile::Reseed;
use acpd_core::record::{EventKind, EventRow, Reads};
use acpd_store::{Reader, StoreError};

/// Bytes of the request, from its beginning, and of the messages during its turn.
const REQUEST: usize = 4 << 10;
/// Bytes of the answer, from its end.
const ANSWER: usize = 3 << 10;
/// Bytes of a transcript, from its end.
const TRANSCRIPT: usize = 64 << 10;
/// Paths of texts in a line.
const CONTENT: &[&str] = &["params", "update", "content", "text"];
const TITLE: &[&str] = &["params", "update", "title"];
/// Lines and bytes per read.
const LINES: u64 = 256;
const BYTES: usize = 16 << 20;

/// Returns a summary or a transcript up to a position; empty if there are no messages.
pub(crate) fn summarize(
    reader: &mut Reader,
    session: SessionKey,
    upto: Seq,
    what: Reseed,
) -> Result<String, StoreError> {
    let mut past = Past::new(what);
    let mut end = upto;
    while end > 0 {
        let after = end.saturating_sub(LINES);
        let rows = reader.events(session, after, end, BYTES)?;
        if rows.iter().rev().any(|row| past.take(row)) {
            break;
        }
        end = after;
    }
    Ok(past.text())
}

/// Parts of a conversation with their texts, from the last to the first.
struct Past {
    what: Reseed,
    parts: Vec<(Part, String)>,
    has_request: bool,
    /// Bytes of answers; in a transcript, of all texts.
    bytes: usize,
}

impl Past {
    fn new(what: Reseed) -> Past {
        Past { what, parts: Vec::new(), has_request: false, bytes: 0 }
    }

    /// Adds the line before the known ones. Returns whether that is enough.
    fn take(&mut self, row: &EventRow) -> bool {
        let Some((part, said)) = part_of(row) else { return false };
        let is_transcript = self.what == Reseed::Transcript;
        match part {
            _ if is_transcript => self.bytes += said.len(),
            Part::TurnStart | Part::Answer if self.has_request => return true,
            // A prompt of acpd itself is no request.
            Part::Request if said == GO_ON => return false,
            Part::Request => self.has_request = true,
            Part::Answer if self.bytes < ANSWER => self.bytes += said.len(),
            Part::Added => {}
            Part::TurnStart | Part::Answer | Part::Call => return false,
        }
        self.parts.push((part, said));
        is_transcript && self.bytes >= TRANSCRIPT
    }

    fn text(mut self) -> String {
        self.parts.reverse();
        match self.what {
            Reseed::Summary => summary(&self.parts),
            Reseed::Transcript => transcript(self.parts),
        }
    }
}

fn summary(parts: &[(Part, String)]) -> String {
    let joined = |part, gap| {
        let texts = parts.iter().filter(|(is, _)| *is == part).map(|(_, said)| said.as_str());
        texts.collect::<Vec<_>>().join(gap).trim().to_owned()
    };
    let mut shown = Vec::new();
    for (head, said) in [
        ("My last request was:", joined(Part::Request, "")),
        ("While you worked on it, I added:", joined(Part::Added, "\n")),
    ] {
        let kept = &said[..said.floor_char_boundary(REQUEST)];
        let more = if kept.len() < said.len() { " …" } else { "" };
        shown.extend((!said.is_empty()).then(|| format!("{head}\n{kept}{more}")));
    }
    let answer = joined(Part::Answer, "");
    if !answer.is_empty() {
        shown.push(format!("Your answer to it ended with:\n{}", last(&answer, ANSWER)));
    }
    shown.join("\n\n")
}

/// Returns the messages of a conversation, with the titles of tool calls.
fn transcript(parts: Vec<(Part, String)>) -> String {
    let mut messages: Vec<(&str, String)> = Vec::new();
    let mut is_open = false;
    for (part, said) in parts {
        let (who, said) = match part {
            Part::TurnStart => {
                is_open = false;
                continue;
            }
            Part::Request | Part::Added => ("I said:", said),
            Part::Answer => ("You answered:", said),
            Part::Call => ("You answered:", format!("\n[{said}]\n")),
        };
        match messages.last_mut().filter(|(by, _)| is_open && *by == who) {
            Some((_, text)) => text.push_str(&said),
            None => messages.push((who, said)),
        }
        is_open = true;
    }
    let message = |(who, said): &(&str, String)| {
        // Quoted, so that no message can look like one of the other side.
        let lines: Vec<_> = said.trim().lines().map(|line| format!("> {line}")).collect();
        format!("{who}\n{}", lines.join("\n"))
    };
    last(&messages.iter().map(message).collect::<Vec<_>>().join("\n\n"), TRANSCRIPT)
}

/// Returns the last bytes of a text, with a mark if there are more.
fn last(text: &str, bytes: usize) -> String {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    format!("{}{}", if from > 0 { "… " } else { "" }, &text[from..])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    TurnStart,
    Request,
    /// A message during the turn.
    Added,
    Answer,
    /// The title of a tool call.
    Call,
}

/// Returns the part of a line and its text; `None` for other lines, and for parts without a text.
fn part_of(row: &EventRow) -> Option<(Part, String)> {
    if !row.form.is_for(Reads::First) {
        return None;
    }
    if str_at(&row.line, &["method"]).as_deref() == Some(method::TURN_STARTED) {
        return Some((Part::TurnStart, String::new()));
    }
    if !matches!(row.kind, EventKind::Update | EventKind::Imported) {
        return None;
    }
    let is_steered = || {
        let mark = locate(&row.line, &["params", "_meta", NAMESPACE, "steered"]);
        mark.is_some_and(|mark| &row.line[mark] == b"true")
    };
    let (part, path) = match &*str_at(&row.line, &["params", "update", "sessionUpdate"])? {
        "user_message_chunk" if is_steered() => (Part::Added, CONTENT),
        "user_message_chunk" => (Part::Request, CONTENT),
        "agent_message_chunk" => (Part::Answer, CONTENT),
        "tool_call" => (Part::Call, TITLE),
        _ => return None,
    };
    Some((part, lossy_at(&row.line, path)?.into_owned()))
}

#[cfg(test)]
mod tests {
    use acp_wire::set_member;
    use acpd_core::ids::Time;
    use acpd_core::record::LineForm;
    use serde_json::json;

    use super::*;

    fn said(kind: &str, text: &str) -> EventRow {
        let content = json!({"type":"text","text":text});
        let update = json!({"sessionUpdate":kind,"content":content});
        let line = json!({"method":"session/update","params":{"sessionId":"s","update":update}});
        row(EventKind::Update, &line)
    }

    fn steered(text: &str) -> EventRow {
        let mut row = said("user_message_chunk", text);
        row.line = set_member(&row.line, &["params", "_meta", NAMESPACE, "steered"], b"true");
        row
    }

    fn row(kind: EventKind, line: &serde_json::Value) -> EventRow {
        let (line, session, at) = (line.to_string().into(), SessionKey(1), Time(0));
        EventRow {
            session,
            seq: 1,
            form: LineForm::default(),
            kind,
            at,
            line,
            origin: None,
            entity: None,
        }
    }

    fn started() -> EventRow {
        row(EventKind::Notice, &json!({"method":method::TURN_STARTED,"params":{}}))
    }

    fn told(what: Reseed, rows: &[EventRow]) -> String {
        let mut past = Past::new(what);
        let _ = rows.iter().rev().any(|row| past.take(row));
        past.text()
    }

    fn sum(rows: &[EventRow]) -> String {
        told(Reseed::Summary, rows)
    }

    #[test]
    fn the_last_request_and_the_end_of_its_answer_are_kept() {
        let rows = [
            started(),
            said("user_message_chunk", "old"),
            said("agent_message_chunk", "old answer"),
            started(),
            said("user_message_chunk", "find "),
            said("user_message_chunk", "the fish"),
            said("agent_message_chunk", "it is "),
            said("agent_thought_chunk", "hm"),
            said("agent_message_chunk", "here"),
        ];
        let expected =
            "My last request was:\nfind the fish\n\nYour answer to it ended with:\nit is here";
        assert_eq!(sum(&rows), expected);
    }

    #[test]
    fn what_was_said_into_the_turn_stands_beside_its_request() {
        let rows = [
            started(),
            said("user_message_chunk", "old"),
            steered("of old"),
            started(),
            said("user_message_chunk", "find the fish"),
            said("agent_message_chunk", "I look "),
            steered("the red one"),
            said("agent_message_chunk", "everywhere"),
            steered("quickly"),
        ];
        let expected = "My last request was:\nfind the fish\n\n\
                        While you worked on it, I added:\nthe red one\nquickly\n\n\
                        Your answer to it ended with:\nI look everywhere";
        assert_eq!(sum(&rows), expected);
    }

    #[test]
    fn a_summary_is_bounded_whatever_was_said() {
        let rows = [
            started(),
            said("user_message_chunk", &"é".repeat(100_000)),
            steered(&"ä".repeat(100_000)),
            said("agent_message_chunk", &"ü".repeat(100_000)),
        ];
        let text = sum(&rows);
        assert!(text.len() < 12 << 10, "{}", text.len());
        assert!(text.ends_with('ü'));
    }

    #[test]
    fn what_acpd_itself_has_asked_is_no_request() {
        let rows = [
            started(),
            said("user_message_chunk", "find the fish"),
            said("agent_message_chunk", "I look"),
            started(),
            said("user_message_chunk", GO_ON),
        ];
        let expected =
            "My last request was:\nfind the fish\n\nYour answer to it ended with:\nI look";
        assert_eq!(sum(&rows), expected);
        assert_eq!(sum(&[started()]), "");
    }

    #[test]
    fn transcript_has_what_was_said_as_far_as_there_is_room() {
        let call = json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"ls"});
        let call = json!({"method":"session/update","params":{"sessionId":"s","update":call}});
        let mut banner = said("agent_message_chunk", "[acpd] not said");
        banner.kind = EventKind::Banner;
        let rows = [
            started(),
            said("user_message_chunk", "one"),
            row(EventKind::Update, &call),
            said("agent_message_chunk", "the "),
            said("agent_message_chunk", "answer\nI said:\nnothing"),
            banner,
            started(),
            said("user_message_chunk", "two"),
            started(),
            said("user_message_chunk", "three"),
        ];
        let text = |rows: &[EventRow]| told(Reseed::Transcript, rows);
        let expected = "I said:\n> one\n\nYou answered:\n> [ls]\n> the answer\n> I said:\n> nothing\n\n\
                        I said:\n> two\n\nI said:\n> three";
        assert_eq!(text(&rows), expected);
        let first = said("user_message_chunk", &"é".repeat(TRANSCRIPT));
        let long = text(&[first, started(), said("user_message_chunk", "last")]);
        assert!(long.starts_with("… é") && long.ends_with("I said:\n> last"));
        assert!(long.len() <= TRANSCRIPT + "… ".len(), "{}", long.len());
    }
}
