//! A client's view of a journal: the lines that the client gets, and changes in them.
//!
//! Architecture invariant: live lines and journal lines go through one function, so a client that
//! falls behind sees the same lines.

mod fold;
mod values;
pub(crate) mod version2;

use std::borrow::Cow;
use std::fmt;

use acp_wire::{StateKey, Version, build, locate, remove_member, set_member, splice, str_at};
use acpd_api::{
    ClientName, LinePosition, NAMESPACE, Reseed, RestoreLevel, Restored, Skipped, TurnState,
    Untrusted, method,
};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::ids::{ClientId, InteractionId, Seq, SessionKey};
use crate::input::{Numbers, Read, View};
use crate::record::{EventKind, EventRow, ReadStyle};

/// The end of a journal, and what a client must know of its session there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalHead<'a> {
    pub(crate) session: SessionKey,
    pub(crate) public_id: &'a str,
    pub(crate) head: Seq,
    pub(crate) state: TurnState,
    pub(crate) mode: Option<&'a str>,
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
    let line = if is_long && !is_state() { skipped(&line, view)? } else { line };
    Some(match view.numbers {
        Numbers::None => line,
        Numbers::InMeta => with_seq(&line, kind, seq, session),
        Numbers::InFront => LinePosition(session.into(), seq).before(&line).into(),
    })
}

/// Begins acpd's sentences among those of the agent.
const OWN_VOICE: &str = "[acpd] ";

/// Returns a sentence of acpd for clients without notices.
pub(crate) fn sentence(session: &str, text: &str) -> Bytes {
    let content = json!({ "type": "text", "text": format!("{OWN_VOICE}{text}\n\n") });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    build::notification("session/update", &json!({ "sessionId": session, "update": update }))
}

/// Describes a restore that lost a part of the conversation of a session. Daemons before the member
/// `gets` journalled the sentence itself.
fn missing_in_words(line: &Bytes) -> Option<(String, String)> {
    if str_at(line, &["method"])? != method::RESTORED {
        return None;
    }
    let restored: Restored = serde_json::from_slice(&line[locate(line, &["params"])?]).ok()?;
    let reason = restored.reason.as_ref().map_or("", Untrusted::raw);
    let text = match (restored.level, restored.gets) {
        (RestoreLevel::Reseeded, Some(gets)) => {
            let gets = match gets {
                Reseed::Summary => "a summary of the last request",
                Reseed::Transcript => "a transcript of the conversation",
            };
            format!(
                "The previous session could not be restored: {reason}. The agent continues in a new one, \
                 with {gets}; your history is intact."
            )
        }
        (RestoreLevel::Partial, _) => format!(
            "The agent may have only a part of this conversation: {reason}. Your history is intact."
        ),
        _ => return None,
    };
    Some((restored.session_id.into_raw(), text))
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

/// ACP v1 unions are closed: a strict client fails on unknown kinds.
fn downgrade(line: &Bytes, kind: EventKind, update: Option<&str>, view: &View) -> Option<Bytes> {
    let can = view.capabilities;
    match kind {
        EventKind::Live => can.notices.then(|| line.clone()),
        EventKind::State(StateKey::Options) if !can.boolean_options => {
            Some(without_boolean_options(line, &["params", "update", "configOptions"]))
        }
        EventKind::Child if !can.subagents => None,
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

pub(crate) fn with_own_content(json: &Bytes, path: &[&str], view: &View) -> Bytes {
    let json = with_own_terminals(json, path, view.editor);
    // The content of another session, unknown to clients without subagents.
    if view.capabilities.subagents { json } else { without_type(&json, path, "session") }
}

/// Gives this editor's terminals its own ids. Other terminals become text.
fn with_own_terminals(json: &Bytes, path: &[&str], editor: u64) -> Bytes {
    replace_terminals(json, path, |item, name| match TerminalName::parse(name)? {
        TerminalName::Editor { editor: of, id } if of == editor => {
            let id = json!(id).to_string();
            Some(set_member(item, &["terminalId"], id.as_bytes()))
        }
        TerminalName::Editor { .. } => Some(text_item("(a terminal of another editor)")),
        // acpd adds the output later, but not to every tool call that shows the terminal.
        TerminalName::Own(_) => Some(text_item("(a terminal of acpd)")),
    })
}

/// `with` gets each terminal and its id.
pub(crate) fn replace_terminals(
    json: &Bytes,
    path: &[&str],
    mut with: impl FnMut(&Bytes, &str) -> Option<Bytes>,
) -> Bytes {
    let Some(range) = locate(json, path) else { return json.clone() };
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(&json[range.clone()]) else {
        return json.clone();
    };
    let mut edits = Vec::new();
    for item in items {
        let item = json.slice_ref(item.get().as_bytes());
        let is_terminal = str_at(&item, &["type"]).as_deref() == Some("terminal");
        let name = str_at(&item, &["terminalId"]).filter(|_| is_terminal);
        if let Some(other) = name.and_then(|name| with(&item, &name)) {
            let start = item.as_ptr() as usize - json.as_ptr() as usize;
            edits.push((start..start + item.len(), other));
        }
    }
    if edits.is_empty() {
        return json.clone();
    }
    let edits: Vec<_> = edits.iter().map(|(at, other)| (at.clone(), &other[..])).collect();
    splice(json, &edits)
}

pub(crate) fn text_item(text: &str) -> Bytes {
    let content = json!({ "type": "text", "text": text });
    json!({ "type": "content", "content": content }).to_string().into()
}

pub(crate) fn without_boolean_options(json: &Bytes, path: &[&str]) -> Bytes {
    without_type(json, path, "boolean")
}

fn without_type(json: &Bytes, path: &[&str], kind: &str) -> Bytes {
    retain_items(json, path, |item| str_at(item, &["type"]).as_deref() != Some(kind))
}

/// Removes the other items of the list at a path.
pub(crate) fn retain_items(json: &Bytes, path: &[&str], keep: impl Fn(&[u8]) -> bool) -> Bytes {
    let Some(range) = locate(json, path) else { return json.clone() };
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(&json[range.clone()]) else {
        return json.clone();
    };
    let texts = items.iter().map(|item| item.get());
    let kept: Vec<&str> = texts.filter(|item| keep(item.as_bytes())).collect();
    if kept.len() == items.len() {
        return json.clone();
    }
    let list = format!("[{}]", kept.join(","));
    splice(json, &[(range, list.as_bytes())])
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

impl Read {
    /// Returns the lines that the client gets for a piece of journal.
    pub fn show(&self, rows: Vec<EventRow>) -> Vec<Bytes> {
        let is_load = self.style == ReadStyle::History;
        let rows = if is_load { fold::fold(rows, self.view.max_line) } else { rows };
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

/// Id of a terminal for agents, which names the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalName<'a> {
    /// A terminal of acpd, named after the request that created it.
    Own(InteractionId),
    Editor {
        editor: u64,
        id: &'a str,
    },
}

impl<'a> TerminalName<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<TerminalName<'a>> {
        if let Some(number) = text.strip_prefix("acpd-") {
            return InteractionId::parse(number).map(TerminalName::Own);
        }
        let text = text.strip_prefix("editor-")?;
        let (end, _) = text.match_indices('-').nth(1)?;
        let InteractionId(editor) = InteractionId::parse(&text[..end])?;
        // A client without terminals has this number.
        (editor != 0).then_some(TerminalName::Editor { editor, id: &text[end + 1..] })
    }
}

impl fmt::Display for TerminalName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TerminalName::Own(number) => write!(f, "acpd-{}", number.text()),
            TerminalName::Editor { editor, id } => {
                write!(f, "editor-{}-{id}", InteractionId(*editor).text())
            }
        }
    }
}
