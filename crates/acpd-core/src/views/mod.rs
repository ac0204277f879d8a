//! A client's view of a journal: the lines that the client gets, and changes in them.
//!
//! Architecture invariant: live lines and journal lines go through one function, so a client that
//! falls behind sees the same lines.

mod content;
mod fold;
mod values;
pub(crate) mod version2;
mod words;

use std::borrow::Cow;

use acp_wire::dialect::BackgroundWork;
use acp_wire::{StateKey, Version, build, locate, remove_member, set_member, str_at};
use acpd_api::{ClientName, LinePosition, LogEntry, NAMESPACE, Skipped, TurnState, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::ids::{ClientId, Seq, SessionKey};
use crate::input::{LogPage, Numbers, Read, View};
use crate::record::{EventKind, EventRow, LineForm, ReadStyle};
use crate::views::words::missing_in_words;

pub(crate) use content::{
    TerminalName, replace_terminals, retain_items, text_item, with_own_content,
    without_boolean_options,
};
pub(crate) use words::sentence;

/// The end of a journal, and what a client must know of its session there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalHead<'a> {
    pub(crate) session: SessionKey,
    pub(crate) public_id: &'a str,
    pub(crate) head: Seq,
    pub(crate) state: TurnState,
    pub(crate) mode: Option<&'a str>,
    /// None if the agent does not list it.
    pub(crate) background: Option<&'a [BackgroundWork]>,
}

/// A connected client that may decide for a person, so agents may ask it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responder<'a> {
    pub(crate) client: ClientId,
    pub(crate) name: &'a ClientName,
    pub(crate) view: &'a View,
}

/// Returns `None` for a hidden line. `update`: the kind of the update, if the caller has read it.
/// `session`: the public id of the journal's session.
pub fn render(row: &EventRow, update: Option<&str>, session: &str, view: &View) -> Option<Bytes> {
    let (line, kind, seq) = (&row.line, row.kind, row.seq);
    let line = match (view.version, kind) {
        _ if !row.form.is_for(view.reads()) => return None,
        (Version::V1, EventKind::Child) if !view.capabilities.subagents => return None,
        _ if view.gets_original(row.form) => line.clone(),
        (Version::V2, _) => version2::render(row, view)?,
        (Version::V1, EventKind::Notice) if !view.notices => {
            missing_in_words(line).map(|(session, text)| sentence(&session, &text))?
        }
        (Version::V1, EventKind::Banner) if view.notices => return None,
        (Version::V1, _) => downgrade(line, kind, update, view)?,
    };
    let is_long = view.max_line > 0 && line.len() as u64 > view.max_line;
    // A client that does not hear of the end of a turn waits for ever.
    let is_state = || view.version.tells_states() && version2::is_state(row);
    let line = match view.version {
        _ if is_long && !is_state() => skipped(&line, view)?,
        Version::V1 => with_version(line, row.form),
        Version::V2 => line,
    };
    Some(match view.numbers {
        Numbers::None => line,
        Numbers::InMeta => with_seq(&line, kind, seq, session),
        Numbers::InFront => LinePosition(session.into(), seq).before(&line).into(),
    })
}

/// A subagent's line also gets the id of the session that numbers it.
fn with_seq(line: &Bytes, kind: EventKind, seq: Seq, session: &str) -> Bytes {
    let path = |name| ["params", "_meta", NAMESPACE, name];
    let line = set_member(line, &path("seq"), seq.to_string().as_bytes());
    if kind != EventKind::Child {
        return line;
    }
    set_member(&line, &path("session"), json!(session).to_string().as_bytes())
}

/// Marks a line of version 2 for readers of both.
fn with_version(line: Bytes, form: LineForm) -> Bytes {
    match form {
        LineForm::Second => set_member(&line, &["params", "_meta", NAMESPACE, "version"], b"2"),
        _ => line,
    }
}

/// ACP v1 unions are closed: a strict client fails on unknown kinds.
fn downgrade(line: &Bytes, kind: EventKind, update: Option<&str>, view: &View) -> Option<Bytes> {
    let can = view.capabilities;
    match kind {
        EventKind::Live => can.notices.then(|| line.clone()),
        EventKind::State(StateKey::Options) if !can.boolean_options => {
            Some(without_boolean_options(line, &["params", "update", "configOptions"]))
        }
        EventKind::Update | EventKind::Imported | EventKind::Child => {
            let read = || str_at(line, &["params", "update", "sessionUpdate"]);
            match update.map(Cow::Borrowed).or_else(read).as_deref() {
                // Only lines of subagents: the session's own notices and options have other kinds.
                Some("notice") if !can.notices => None,
                Some("config_option_update") if !can.boolean_options => {
                    Some(without_boolean_options(line, &["params", "update", "configOptions"]))
                }
                Some("compaction_update" | "compaction_summary_chunk") if !can.compaction => None,
                Some("subagent_update" | "session_message" | "session_message_chunk")
                    if !can.subagents =>
                {
                    None
                }
                Some("plan_update") if !can.plan => as_plan(line),
                Some("plan_removed") if !can.plan => None,
                Some("tool_call" | "tool_call_update") => {
                    Some(with_own_content(line, &["params", "update", "content"], view))
                }
                _ => Some(line.clone()),
            }
        }
        _ => Some(line.clone()),
    }
}

/// Every client knows `plan`. Returns `None` without entries (a file or a text).
fn as_plan(line: &Bytes) -> Option<Bytes> {
    let entries = line.slice(locate(line, &["params", "update", "plan", "entries"])?);
    let line = remove_member(line, &["params", "update", "plan"]);
    let line = set_member(&line, &["params", "update", "sessionUpdate"], b"\"plan\"");
    Some(set_member(&line, &["params", "update", "entries"], &entries))
}

/// Clients without subagents do not know the child.
pub(crate) fn with_known_session(line: Bytes, public_id: &str, shows_subagents: bool) -> Bytes {
    let session = ["params", "sessionId"];
    if shows_subagents || str_at(&line, &session).is_none_or(|id| id == public_id) {
        return line;
    }
    set_member(&line, &session, json!(public_id).to_string().as_bytes())
}

fn skipped(line: &Bytes, view: &View) -> Option<Bytes> {
    if !view.notices {
        return None;
    }
    let session_id = str_at(line, &["params", "sessionId"])?.into_owned();
    let notice =
        Skipped { session_id: session_id.into(), bytes: line.len() as u64, limit: view.max_line };
    Some(build::notification(method::SKIPPED, &notice))
}

impl LogPage {
    /// Returns the entries for rows of the journal.
    pub fn entries(&self, rows: Vec<EventRow>) -> Vec<LogEntry> {
        let rows = rows.into_iter();
        // A notice says the same as a banner.
        let rows = rows.filter(|row| row.kind != EventKind::Banner && row.form.is_for(self.reads));
        let entry = |row: EventRow| {
            let line = with_version(row.line, row.form);
            let line = RawValue::from_string(String::from_utf8(line.into()).ok()?).ok()?;
            Some(LogEntry { seq: row.seq, line })
        };
        rows.filter_map(entry).collect()
    }
}

impl Read {
    /// Returns the lines that the client gets for a piece of journal.
    pub fn show(&self, mut rows: Vec<EventRow>) -> Vec<Bytes> {
        let is_load = self.style == ReadStyle::History;
        rows.retain(|row| row.form.is_for(self.view.reads()));
        let rows = if is_load { fold::fold(rows, &self.view) } else { rows };
        let is_past =
            |row: &EventRow| is_load && self.view.version.tells_states() && version2::is_state(row);
        rows.iter().filter(|row| !is_past(row)).filter_map(|row| self.show_one(row)).collect()
    }

    /// Returns `None` for a hidden line.
    fn show_one(&self, row: &EventRow) -> Option<Bytes> {
        if row.origin.is_some() && row.origin == self.origin {
            return None;
        }
        render(row, None, &self.public_id, &self.view)
    }
}
