//! The call of a permission question, frozen when people are asked.
//!
//! ```text
//!  request + everything known of its call ─▶ frozen ─▶ policy ─▶ shown to people ─▶ decided, remembered
//!                                               ▲                      │
//!                                               └── the agent changes the call: withdrawn, asked again
//! ```
//!
//! Architecture invariant: the call that is decided, remembered, listed and sent to hooks is the
//! one that was shown. A question's id stands for its content, so an answer to a withdrawn question
//! has no effect.

use std::borrow::Cow;

use acp_wire::locate;
use acpd_api::{
    DoingKind, PermissionDecided, PermissionMeta, RawCall, Shown, ShownDiff, ShownUnclear,
    Untrusted,
};
use acpd_policy::{Kind, Subject, Understanding};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool_calls::call::Call;

/// Maximum number of diffs of a call whose files acpd reads.
const FILES: usize = 16;
/// Maximum size of the texts in a call's shown diffs, in bytes.
const DIFF_BYTES: usize = 128 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub(crate) call: Call,
    pub(crate) shown: Shown,
    pub(crate) subject: Option<Subject>,
    pub(crate) changed: u32,
}

impl Frozen {
    pub(crate) fn of(call: Call, changed: u32) -> Frozen {
        let understanding = call.with_question(|question| Understanding::of(&question));
        let subject = understanding.subject.clone();
        let shown = shown(understanding, &call);
        Frozen { call, shown, subject, changed }
    }

    /// `known`: the announced call.
    pub(crate) fn of_question(mut known: Call, line: &[u8]) -> Frozen {
        // A question may be as long as its line.
        known.take_up_to(&call_in(line), usize::MAX);
        Frozen::of(known, 0)
    }

    /// `from`: the first diff to consider.
    pub(crate) fn unseen_file(&self, from: usize) -> Option<(usize, &str)> {
        let diffs = self.shown.diffs.iter().enumerate().take(FILES).skip(from);
        let mut unseen = diffs.filter(|(_, diff)| diff.unseen);
        unseen.next().map(|(at, diff)| (at, diff.path.raw()))
    }

    /// `before`: `None` if there is no such file.
    pub(crate) fn take_file(&mut self, at: usize, before: Option<String>) {
        let bytes = |diff: &ShownDiff| {
            diff.old_text.as_ref().map_or(0, |old| old.raw().len()) + diff.new_text.raw().len()
        };
        let all: usize = self.shown.diffs.iter().map(bytes).sum();
        let Some(diff) = self.shown.diffs.get_mut(at) else { return };
        diff.unseen = false;
        let Some(before) = before else { return };
        diff.replaces = true;
        if all + before.len() <= DIFF_BYTES {
            diff.old_text = Some(before.into());
            return;
        }
        diff.left_out = (before.len() + bytes(diff)) as u64;
        diff.new_text = Untrusted::default();
        self.shown.raw.get_or_insert_with(|| RawCall::beginning(&self.call.json()));
    }

    /// Returns the subject on one line.
    pub(crate) fn asked(&self) -> Option<String> {
        self.subject.as_ref().map(Subject::asked)
    }

    /// Returns the first command, else the title.
    pub(crate) fn gist(&self) -> Cow<'_, str> {
        let title = || self.shown.title.as_ref();
        let text = self.shown.commands.first().or_else(title);
        text.map(Untrusted::raw).unwrap_or_default().into()
    }

    pub(crate) fn meta(&self, id: String) -> PermissionMeta {
        PermissionMeta { id, shown: self.shown.clone(), changed: self.changed }
    }

    pub(crate) fn tool_call_id(&self) -> Option<Untrusted> {
        self.call.get("toolCallId").and_then(|id| serde_json::from_str(id).ok())
    }

    pub(crate) fn decided(&self, session: &str, by: String) -> PermissionDecided {
        PermissionDecided {
            session_id: session.into(),
            tool_call_id: self.tool_call_id(),
            title: self.shown.title.clone(),
            subject: self.asked().map(Into::into),
            shown: Some(Box::new(without_diff_texts(self.shown.clone()))),
            option_id: "".into(),
            verdict: "reject".into(),
            by: by.into(),
        }
    }
}

pub(crate) fn doing(call: &Call) -> (DoingKind, String) {
    let mut understood = call.with_question(|question| Understanding::of(&question));
    let command =
        (!understood.commands.is_empty()).then(|| understood.commands.swap_remove(0).runs);
    let is_command = command.is_some() || understood.kind == Kind::Execute;
    let kind = if is_command { DoingKind::Command } else { DoingKind::Tool };
    (kind, command.or(understood.title).unwrap_or_default())
}

/// The journal has the texts in an update of the call.
fn without_diff_texts(mut shown: Shown) -> Shown {
    for diff in &mut shown.diffs {
        let old = diff.old_text.take().unwrap_or_default();
        let new = std::mem::take(&mut diff.new_text);
        diff.left_out += (old.raw().len() + new.raw().len()) as u64;
    }
    shown
}

/// Without a `toolCall`, the other members become the input of a call without an id.
pub(crate) fn call_in(line: &[u8]) -> Cow<'_, [u8]> {
    let call = locate(line, &["params", "toolCall"]).map(|range| &line[range]);
    if let Some(call) = call.filter(|call| *call != b"null") {
        return call.into();
    }
    let params = locate(line, &["params"]).map_or(&b""[..], |range| &line[range]);
    let Ok(mut input) = serde_json::from_slice::<Map<String, Value>>(params) else {
        return b"null".into();
    };
    for known in ["sessionId", "options", "toolCall", "_meta"] {
        input.remove(known);
    }
    let within = ["title", "description"].iter().find_map(|name| input.get(*name)?.as_str());
    let title = within.or_else(|| input.get("request")?.get("title")?.as_str());
    let call = json!({ "title": title, "rawInput": input });
    if input.is_empty() { b"null".into() } else { call.to_string().into_bytes().into() }
}

fn shown(understanding: Understanding, call: &Call) -> Shown {
    let all = |texts: Vec<String>| texts.into_iter().map(Into::into).collect();
    let unclear = understanding.unclear.into_iter();
    let unclear =
        unclear.map(|part| ShownUnclear { member: part.member.into(), why: part.why.into() });
    let mut shown = Shown {
        kind: understanding.kind.to_string().into(),
        title: understanding.title.map(Into::into),
        commands: understanding.commands.into_iter().map(|command| command.runs.into()).collect(),
        folder: understanding.folder.map(Into::into),
        paths: all(understanding.paths),
        urls: all(understanding.urls),
        diffs: Vec::new(),
        unclear: unclear.collect(),
        raw: None,
        always: understanding.subject.map(|subject| subject.to_string().into()),
    };
    let (diffs, is_read) = diffs(call);
    shown.diffs = diffs;
    if !is_read {
        shown.unclear.push(not_read("content", "cannot be read"));
    }
    let says_something = shown.title.as_ref().is_some_and(|title| !title.raw().trim().is_empty())
        || ![&shown.commands, &shown.paths, &shown.urls].iter().all(|list| list.is_empty());
    if !says_something {
        shown.unclear.push(not_read("", "does not say what it does"));
    }
    let is_all = shown.unclear.is_empty() && shown.diffs.iter().all(|diff| diff.left_out == 0);
    shown.raw = (!is_all).then(|| RawCall::beginning(&call.json()));
    shown
}

fn not_read(member: &str, why: &str) -> ShownUnclear {
    ShownUnclear { member: member.into(), why: why.into() }
}

/// Returns the readable diffs, and whether these are all.
fn diffs(call: &Call) -> (Vec<ShownDiff>, bool) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Diff {
        path: String,
        old_text: Option<String>,
        new_text: String,
    }
    let mut room = DIFF_BYTES;
    let all = call.diffs();
    let diffs = all.iter().filter_map(|diff| {
        let Diff { path, old_text, new_text } = serde_json::from_str(diff).ok()?;
        let bytes = old_text.as_ref().map_or(0, String::len) + new_text.len();
        let path = path.into();
        let Some(rest) = room.checked_sub(bytes) else {
            return Some(ShownDiff { path, left_out: bytes as u64, ..ShownDiff::default() });
        };
        room = rest;
        // Some agents send an empty old text for each file that they write completely.
        let old_text = old_text.filter(|old| !old.is_empty()).map(Into::into);
        let (unseen, new_text) = (old_text.is_none(), new_text.into());
        Some(ShownDiff { path, old_text, new_text, unseen, ..ShownDiff::default() })
    });
    let diffs: Vec<_> = diffs.collect();
    let is_read = diffs.len() == all.len();
    (diffs, is_read)
}
