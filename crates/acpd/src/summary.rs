//! Summaries and transcripts of a session, for an agent that has lost it. A summary has a few KiB:
//! the last request, the messages during its turn, and the end of the last answer. A transcript has
//! up to 64 KiB of the conversation. The journal is read backwards, a piece at a time.

use acp_wire::{locate, lossy_at, str_at};
use acpd_api::{NAMESPACE, method};
use acpd_core::GO_ON;
use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::{EventKind, EventRow};
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

/// Returns a summary up to a position; empty if there are no messages.
pub(crate) fn summarize(
    reader: &mut Reader,
    session: SessionKey,
    upto: Seq,
) -> Result<String, StoreError> {
    let mut summary = Summary::default();
    read_back(reader, session, upto, |row| summary.take(row))?;
    Ok(summary.text())
}

/// Returns the last [`TRANSCRIPT`] bytes of a conversation up to a position, with the titles of
/// tool calls.
pub(crate) fn transcript(
    reader: &mut Reader,
    session: SessionKey,
    upto: Seq,
) -> Result<String, StoreError> {
    let mut transcript = Transcript::default();
    read_back(reader, session, upto, |row| transcript.take(row))?;
    Ok(transcript.text())
}

fn read_back(
    reader: &mut Reader,
    session: SessionKey,
    upto: Seq,
    mut is_enough: impl FnMut(&EventRow) -> bool,
) -> Result<(), StoreError> {
    let mut end = upto;
    while end > 0 {
        let after = end.saturating_sub(LINES);
        let rows = reader.events(session, after, end, BYTES)?;
        if rows.iter().rev().any(&mut is_enough) {
            break;
        }
        end = after;
    }
    Ok(())
}

/// Messages and their pieces, from the last to the first.
#[derive(Debug, Default)]
struct Transcript {
    messages: Vec<(&'static str, Vec<String>)>,
    /// The last message may continue with the next line.
    is_open: bool,
    bytes: usize,
}

impl Transcript {
    /// Adds the line before the known ones. Returns whether that is enough.
    fn take(&mut self, row: &EventRow) -> bool {
        let Some((part, said)) = part_of(row) else { return false };
        let (who, said) = match part {
            Part::TurnStart => {
                self.is_open = false;
                return false;
            }
            Part::Request | Part::Added => ("I said:", said),
            Part::Answer => ("You answered:", said),
            Part::Call => ("You answered:", format!("\n[{said}]\n")),
        };
        self.bytes += said.len();
        match self.messages.last_mut().filter(|(by, _)| self.is_open && *by == who) {
            Some((_, pieces)) => pieces.push(said),
            None => self.messages.push((who, vec![said])),
        }
        self.is_open = true;
        self.bytes >= TRANSCRIPT
    }

    fn text(self) -> String {
        let message = |(who, pieces): (&str, Vec<String>)| {
            let said: String = pieces.into_iter().rev().collect();
            // Quoted, so that no message can look like one of the other side.
            let lines: Vec<_> = said.trim().lines().map(|line| format!("> {line}")).collect();
            format!("{who}\n{}", lines.join("\n"))
        };
        let messages: Vec<_> = self.messages.into_iter().rev().map(message).collect();
        let all = messages.join("\n\n");
        let from = all.ceil_char_boundary(all.len().saturating_sub(TRANSCRIPT));
        format!("{}{}", if from > 0 { "… " } else { "" }, &all[from..])
    }
}

/// Texts from the last to the first.
#[derive(Debug, Default)]
struct Summary {
    request: Vec<String>,
    /// Messages during the turn.
    added: Vec<String>,
    answer: Vec<String>,
    answer_bytes: usize,
}

impl Summary {
    /// Adds the line before the known ones. Returns whether that is enough.
    fn take(&mut self, row: &EventRow) -> bool {
        let Some((part, said)) = part_of(row) else { return false };
        match part {
            Part::TurnStart | Part::Answer if !self.request.is_empty() => return true,
            // A prompt of acpd itself is no request.
            Part::Request if said != GO_ON => self.request.push(said),
            Part::Added => self.added.push(said),
            Part::Answer if self.answer_bytes < ANSWER => {
                self.answer_bytes += said.len();
                self.answer.push(said);
            }
            _ => {}
        }
        false
    }

    fn text(self) -> String {
        let joined = |texts: &[String], gap| {
            let texts: Vec<_> = texts.iter().rev().map(String::as_str).collect();
            texts.join(gap).trim().to_owned()
        };
        let mut parts = Vec::new();
        for (head, said) in [
            ("My last request was:", joined(&self.request, "")),
            ("While you worked on it, I added:", joined(&self.added, "\n")),
        ] {
            let kept = &said[..said.floor_char_boundary(REQUEST)];
            let more = if kept.len() < said.len() { " …" } else { "" };
            parts.extend((!said.is_empty()).then(|| format!("{head}\n{kept}{more}")));
        }
        let answer = joined(&self.answer, "");
        if !answer.is_empty() {
            let from = answer.ceil_char_boundary(answer.len().saturating_sub(ANSWER));
            let more = if from > 0 { "… " } else { "" };
            parts.push(format!("Your answer to it ended with:\n{more}{}", &answer[from..]));
        }
        parts.join("\n\n")
    }
}

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
        let line = line.to_string().into();
        EventRow { session: SessionKey(1), seq: 1, pv: 1, kind, at: Time(0), line, origin: None }
    }

    fn started() -> EventRow {
        row(EventKind::Notice, &json!({"method":method::TURN_STARTED,"params":{}}))
    }

    fn sum(rows: &[EventRow]) -> String {
        let mut summary = Summary::default();
        let _ = rows.iter().rev().any(|row| summary.take(row));
        summary.text()
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
        let text = |rows: &[EventRow]| {
            let mut transcript = Transcript::default();
            let _ = rows.iter().rev().any(|row| transcript.take(row));
            transcript.text()
        };
        let expected = "I said:\n> one\n\nYou answered:\n> [ls]\n> the answer\n> I said:\n> nothing\n\n\
                        I said:\n> two\n\nI said:\n> three";
        assert_eq!(text(&rows), expected);
        let first = said("user_message_chunk", &"é".repeat(TRANSCRIPT));
        let long = text(&[first, started(), said("user_message_chunk", "last")]);
        assert!(long.starts_with("… é") && long.ends_with("I said:\n> last"));
        assert!(long.len() <= TRANSCRIPT + "… ".len(), "{}", long.len());
    }
}
