//! What a permission question is about, fixed when it is asked.
//!
//! ```text
//!  request + all that was said of its call ─▶ frozen ─▶ policy ─▶ shown to people ─▶ decided, remembered
//!                                               ▲                      │
//!                                               └── the agent changes the call: withdrawn, asked anew
//! ```
//!
//! Architecture invariant: what is decided, remembered, listed and told to hooks is what was shown. The id of a
//! question stands for its content: an answer to a question that was withdrawn because its call changed
//! answers nothing.

use acp_wire::acp::{PermissionOption, PermissionRequest};
use acp_wire::bound::LONGEST_ID;
use acp_wire::{ErrorObject, build, code, locate, set_member, str_at};
use acpd_api::{
    NAMESPACE, PermissionDecided, PermissionMeta, RawCall, Shown, ShownDiff, ShownUnclear, method,
};
use acpd_policy::{Subject, Understanding};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::hub::Hub;
use crate::hub::process::slots::SlotId;
use crate::hub::questions::interaction::Interaction;
use crate::hub::session::sessions::OPEN_TOOLS;
use crate::ids::{InteractionId, SessionKey};
use crate::input::Batch;
use crate::record::{EventKind, InteractionRow};
use crate::tool_calls::call::{Call, Member, update_in};

/// The longest texts of diffs that are shown, of all diffs of a call, in bytes.
const DIFF_BYTES: usize = 128 << 10;
/// How often an agent may change a call while a person is asked about it.
const CHANGES: u32 = 16;

/// For clients that are not shown it in the question itself.
const CHANGED: &str = "The agent changed a tool call while you were asked about it. The question was \
                       withdrawn; look at the new one before you answer it.";

/// The call that a permission question is about, as it was when it was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    call: Call,
    pub(crate) shown: Shown,
    /// What "always" remembers.
    pub(crate) subject: Option<Subject>,
    /// How often the call changed while a person was asked.
    pub(crate) changed: u32,
}

impl Frozen {
    fn of(call: Call, changed: u32) -> Frozen {
        let json = raw_json(&call);
        let understanding = Understanding::of(&call.question(&json));
        let subject = understanding.subject.clone();
        let shown = shown(understanding, &call, json.get());
        Frozen { call, shown, subject, changed }
    }

    /// Of a question that was asked by a daemon that did not keep what it is about.
    pub(crate) fn of_old_question(line: &[u8]) -> Frozen {
        let mut call = Call::unknown();
        call.take_whole(call_in(line));
        Frozen::of(call, 0)
    }

    /// What it is about, in one line.
    pub(crate) fn asked(&self) -> Option<String> {
        self.subject.as_ref().map(Subject::asked)
    }

    /// Gives the question as the policy decides on it.
    pub(crate) fn with_request<T>(
        &self,
        options: &[PermissionOption],
        then: impl FnOnce(&PermissionRequest<'_>) -> T,
    ) -> T {
        let json = raw_json(&self.call);
        let options = options.to_vec();
        then(&PermissionRequest { options, ..self.call.question(&json) })
    }

    /// The question as it is offered to clients that know what `_acpd` means.
    pub(crate) fn put_into(&self, line: &Bytes) -> Bytes {
        let meta = PermissionMeta { shown: self.shown.clone(), changed: self.changed };
        let meta = json!(meta).to_string();
        set_member(line, &["params", "_meta", NAMESPACE], meta.as_bytes())
    }

    /// That acpd has answered, for the journal.
    pub(crate) fn decided(&self, session: &str, by: String) -> PermissionDecided {
        let id = self.call.get(Member::ToolCallId).and_then(|id| serde_json::from_str(id).ok());
        PermissionDecided {
            session_id: session.into(),
            tool_call_id: id,
            title: self.shown.title.clone(),
            subject: self.asked().map(Into::into),
            shown: Some(Box::new(without_diff_texts(self.shown.clone()))),
            option_id: "".into(),
            verdict: "reject".into(),
            by: by.into(),
        }
    }
}

fn raw_json(call: &Call) -> Box<RawValue> {
    RawValue::from_string(call.json()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// For the journal, where an update of the call has them.
fn without_diff_texts(mut shown: Shown) -> Shown {
    for diff in &mut shown.diffs {
        let old = diff.old_text.take().unwrap_or_default();
        let new = std::mem::take(&mut diff.new_text);
        diff.left_out += (old.raw().len() + new.raw().len()) as u64;
    }
    shown
}

/// The `toolCall` of a question.
fn call_in(line: &[u8]) -> &[u8] {
    locate(line, &["params", "toolCall"]).map_or(b"null", |range| &line[range])
}

fn shown(understanding: Understanding, call: &Call, json: &str) -> Shown {
    let all = |texts: Vec<String>| texts.into_iter().map(Into::into).collect();
    let unclear = understanding.unclear.into_iter();
    let unclear =
        unclear.map(|part| ShownUnclear { member: part.member.into(), why: part.why.into() });
    let mut shown = Shown {
        kind: understanding.kind.to_string().into(),
        title: understanding.title.map(Into::into),
        commands: all(understanding.commands),
        folder: understanding.folder.map(Into::into),
        paths: all(understanding.paths),
        urls: all(understanding.urls),
        diffs: Vec::new(),
        unclear: unclear.collect(),
        raw: None,
        always: understanding.subject.map(|subject| subject.to_string().into()),
    };
    match diffs(call) {
        Some(diffs) => shown.diffs = diffs,
        None => shown.unclear.push(not_read("content", "cannot be read")),
    }
    let says_something = shown.title.as_ref().is_some_and(|title| !title.raw().trim().is_empty())
        || ![&shown.commands, &shown.paths, &shown.urls].iter().all(|list| list.is_empty());
    if !says_something {
        shown.unclear.push(not_read("", "does not say what it does"));
    }
    let is_all = shown.unclear.is_empty() && shown.diffs.iter().all(|diff| diff.left_out == 0);
    shown.raw = (!is_all).then(|| RawCall::beginning(json));
    shown
}

fn not_read(member: &str, why: &str) -> ShownUnclear {
    ShownUnclear { member: member.into(), why: why.into() }
}

/// The diffs in the content of a call; nothing if one of them cannot be read.
fn diffs(call: &Call) -> Option<Vec<ShownDiff>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Diff {
        path: String,
        old_text: Option<String>,
        new_text: String,
    }
    let mut room = DIFF_BYTES;
    let diffs = call.diffs().into_iter().map(|diff| {
        let Diff { path, old_text, new_text } = serde_json::from_str(diff).ok()?;
        let bytes = old_text.as_ref().map_or(0, String::len) + new_text.len();
        let path = path.into();
        let Some(rest) = room.checked_sub(bytes) else {
            return Some(ShownDiff { path, left_out: bytes as u64, ..ShownDiff::default() });
        };
        room = rest;
        let (old_text, new_text) = (old_text.map(Into::into), new_text.into());
        Some(ShownDiff { path, old_text, new_text, left_out: 0 })
    });
    diffs.collect()
}

impl Hub {
    /// Fixes what a permission question is about. `is_intact`: the line is as the agent wrote it.
    pub(crate) fn freeze(&mut self, key: SessionKey, line: &[u8], is_intact: bool) -> Box<Frozen> {
        let asked = call_in(line);
        let mut call = match self.name_of_asked(key, line) {
            None => Call::default(),
            Some(name) => {
                let known = self.session(key).calls.get(&name);
                let call = known.cloned().unwrap_or_else(|| self.new_call(key, &name));
                self.note_call(key, &name, asked);
                call
            }
        };
        call.take_whole(asked);
        if !is_intact {
            call.doubt();
        }
        Box::new(Frozen::of(call, 0))
    }

    /// Many agents say what a call is about when it begins, and ask with little more than its id.
    pub(crate) fn note_call(&mut self, key: SessionKey, name: &str, update: &[u8]) {
        if let Some(call) = self.call_mut(key, name) {
            call.take(update);
            call.shrink_if_over();
        }
    }

    /// A call that something was said of, if there is room for it.
    fn call_mut(&mut self, key: SessionKey, name: &str) -> Option<&mut Call> {
        if !self.session(key).calls.contains_key(name) {
            if !self.has_room_for(key, name) {
                return None;
            }
            let new = self.new_call(key, name);
            self.session_mut(key).calls.insert(name.to_owned(), new);
        }
        self.session_mut(key).calls.get_mut(name)
    }

    fn has_room_for(&self, key: SessionKey, name: &str) -> bool {
        name.len() <= LONGEST_ID && self.session(key).calls.len() < OPEN_TOOLS
    }

    /// A call of which this daemon has heard nothing yet. It may have been described to the last one, or
    /// when there were too many calls to keep.
    fn new_call(&self, key: SessionKey, name: &str) -> Call {
        let session = self.session(key);
        let is_whole = session.running.as_ref().is_none_or(|turn| turn.whole);
        // Of calls of subagents it is not known which are open.
        let was_told = session.row.open_tools.contains(name) || name.contains('\n');
        let is_known = if is_whole { self.has_room_for(key, name) } else { !was_told };
        if is_known { Call::default() } else { Call::unknown() }
    }

    /// The name of the call that a question is about, as in [`Hub::call_name`].
    fn name_of_asked(&self, key: SessionKey, line: &[u8]) -> Option<String> {
        let id = str_at(line, &["params", "toolCall", "toolCallId"])?;
        let session = str_at(line, &["params", "sessionId"]);
        Some(self.call_name(key, session.as_deref(), &id).into_owned())
    }

    /// An update of a call, which is in the journal: questions about the call that it changes are withdrawn and
    /// asked anew.
    pub(crate) fn call_told(&mut self, key: SessionKey, line: &Bytes, out: &mut Batch) {
        if self.session(key).interactions.is_empty() {
            return;
        }
        let Some(id) = str_at(line, &["params", "update", "toolCallId"]) else { return };
        let session = str_at(line, &["params", "sessionId"]);
        let name = self.call_name(key, session.as_deref(), &id).into_owned();
        self.change_asked(key, &name, |call| call.take(update_in(line)), out);
    }

    /// Something was taken out of what an agent said about a call: nothing but a person decides on it, and
    /// who is asked about it is asked anew.
    pub(crate) fn doubt_call(&mut self, slot: SlotId, line: &[u8], out: &mut Batch) {
        let call = str_at(line, &["params", "update", "toolCallId"]);
        let session = str_at(line, &["params", "sessionId"]);
        let (Some(call), Some(session)) = (call, session) else { return };
        let Some(key) = self.routed(slot, &session) else { return };
        let name = self.call_name(key, Some(self.public_of(key, &session)), &call).into_owned();
        if let Some(call) = self.call_mut(key, &name) {
            call.doubt();
        }
        self.change_asked(key, &name, Call::doubt, out);
    }

    /// Changes a call in all open questions about it.
    fn change_asked(
        &mut self,
        key: SessionKey,
        name: &str,
        change: impl Fn(&mut Call),
        out: &mut Batch,
    ) {
        for interaction in self.session(key).interactions.clone() {
            let Some(open) = self.interactions.get(&interaction) else { continue };
            let Some(frozen) = &open.frozen else { continue };
            if self.name_of_asked(key, &open.line).as_deref() != Some(name) {
                continue;
            }
            let mut call = frozen.call.clone();
            change(&mut call);
            if !call.asks_the_same(&frozen.call) {
                self.ask_anew(key, interaction, call, out);
            }
        }
    }

    fn ask_anew(
        &mut self,
        key: SessionKey,
        interaction: InteractionId,
        call: Call,
        out: &mut Batch,
    ) {
        let Some(old) = self.withdraw_question(interaction, out) else { return };
        let Interaction { host, agent_request, line, question, frozen: Some(frozen), .. } = old
        else {
            return;
        };
        let Some(&slot) = self.hosts.get(&host) else { return };
        if frozen.changed >= CHANGES {
            let why =
                format!("the agent changed the call {CHANGES} times while a person was asked");
            let error = ErrorObject::new(code::INVALID_PARAMS, format!("refused: {why}"));
            self.host_write(slot, build::error(&agent_request, &error), out);
            let decided = frozen.decided(&self.session(key).row.public_id, why);
            return self.tell_decided(key, &decided, out);
        }
        // What the agent said last takes the place of what it asked with.
        let line = call.put_into(&line);
        let frozen = Box::new(Frozen::of(call, frozen.changed + 1));
        self.banner(key, CHANGED, out);
        if let Some(answer) = self.decided(key, &frozen, &question, out) {
            self.host_write(slot, build::response(&agent_request, &answer), out);
            return;
        }
        let (id, session, at) = (InteractionId(self.ids.issue()), Some(key), self.now);
        let row = InteractionRow { id, session, host, line, at, frozen: Some(frozen) };
        self.open_interaction(row, agent_request, question, out);
    }

    /// That nobody was asked, in the journal.
    pub(crate) fn tell_decided(
        &mut self,
        key: SessionKey,
        decided: &PermissionDecided,
        out: &mut Batch,
    ) {
        let line = build::notification(method::PERMISSION_DECIDED, decided);
        self.append(key, EventKind::Notice, line, None, out);
        out.durable = true;
    }
}
