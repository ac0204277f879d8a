//! Lines of version 1 for clients of version 2. An agent of version 2 has lines of its own for them
//! ([`LineForm`]).
//!
//! | In the journal | For the client |
//! | --- | --- |
//! | `_acpd/turn_started` | `state_update`: `running` |
//! | `_acpd/turn_ended` | `state_update`: `idle` with the stop reason, the error and the usage |
//! | a mode or options | nothing: the relay sends all options, which have the modes among them |
//! | a sentence of acpd | `notice` |
//! | other updates | [`acp_wire::dialect`] |
//!
//! A replay shows no state of the past; the state of the session comes behind it.

use acp_wire::UpdateClass::Conversation;
use acp_wire::dialect::{BackgroundWork, update_to_v2};
use acp_wire::{StateKey, Version, build, classify_update, code, locate, lossy_at, str_at};
use acpd_api::{NAMESPACE, Outcome, Reason, Tokens, TurnEnded, TurnState, Untrusted, method};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::input::View;
use crate::record::{EventKind, EventRow, LineForm, Reads, is_about_turn};
use crate::views::JournalHead;
use crate::views::content::with_own_content;
use crate::views::words::{OWN_VOICE, missing_in_words};

impl View {
    pub fn reads(&self) -> Reads {
        match self.version {
            Version::V1 if self.originals => Reads::Both,
            Version::V1 => Reads::First,
            Version::V2 => Reads::Second,
        }
    }

    /// Returns whether the client gets the line as the agent has sent it.
    pub(super) fn gets_original(&self, form: LineForm) -> bool {
        match form {
            LineForm::Same => self.version == Version::V2,
            LineForm::Second | LineForm::Echo => true,
            LineForm::Converted | LineForm::First | LineForm::Meaning => false,
        }
    }
}

/// Returns `None` for a hidden line.
pub(super) fn render(row: &EventRow, view: &View) -> Option<Bytes> {
    let line = &row.line;
    match row.kind {
        EventKind::Notice => {
            let shown = state_of(line).or_else(|| view.notices.then(|| line.clone()));
            shown.or_else(|| missing_in_words(line).map(|(session, text)| notice(&session, &text)))
        }
        EventKind::Banner if view.notices => None,
        EventKind::Banner => {
            let session = str_at(line, &["params", "sessionId"])?;
            let text = lossy_at(line, &["params", "update", "content", "text"])?;
            Some(notice(&session, text.strip_prefix(OWN_VOICE).unwrap_or(&text).trim_end()))
        }
        EventKind::State(StateKey::Mode | StateKey::Options) => None,
        EventKind::Extension => Some(line.clone()),
        _ => {
            let content = ["params", "update", "content"];
            let is_list = locate(line, &content).is_some_and(|at| line[at.start] == b'[');
            let own = is_list.then(|| with_own_content(line, &content, view));
            let kind = || str_at(line, &["params", "update", "sessionUpdate"]);
            // Lines from before there were entities: what a history folds is a message.
            let is_said = || kind().is_some_and(|kind| classify_update(&kind) == Conversation);
            let entity = row.entity.or_else(|| is_said().then_some(row.seq));
            update_to_v2(own.as_ref().unwrap_or(line), entity)
        }
    }
}

/// Returns whether the client gets all options instead of this line.
pub(crate) fn has_all_options(row: &EventRow, view: &View) -> bool {
    let is_one = matches!(row.kind, EventKind::State(StateKey::Mode | StateKey::Options));
    is_one && view.version == Version::V2
}

pub(super) fn is_state(row: &EventRow) -> bool {
    match row.kind {
        EventKind::Notice => is_about_turn(&row.line),
        EventKind::Live => row.form == LineForm::Echo,
        _ => false,
    }
}

/// Returns the state of a session that its turns have when this notice is written.
fn state_of(line: &Bytes) -> Option<Bytes> {
    let session = str_at(line, &["params", "sessionId"])?;
    match &*str_at(line, &["method"])? {
        method::TURN_STARTED => Some(state_update(&session, TurnState::Working)),
        method::TURN_ENDED => {
            let ended = serde_json::from_slice(&line[locate(line, &["params"])?]).ok()?;
            Some(update(&session, &idle(&ended)))
        }
        _ => None,
    }
}

fn idle(ended: &TurnEnded) -> Value {
    let mut idle = json!({ "sessionUpdate": "state_update", "state": "idle" });
    let cut_off = |reason: Reason, message: &Untrusted| {
        let data = json!({ NAMESPACE: { "reason": reason } });
        json!({ "code": code::INTERNAL, "message": message, "data": data })
    };
    let error = match &ended.outcome {
        Outcome::Stopped { stop_reason } => {
            idle["stopReason"] = json!(stop_reason);
            None
        }
        Outcome::Error { code, message } => Some(json!({ "code": code, "message": message })),
        Outcome::Interrupted { reason } | Outcome::Unwedged { reason } => {
            Some(cut_off(Reason::Interrupted, reason))
        }
        Outcome::OutcomeUnknown { reason } => Some(cut_off(Reason::OutcomeUnknown, reason)),
    };
    if let Some(error) = error {
        idle["stopReason"] = "error".into();
        idle["error"] = error;
    }
    if let Some(usage) = ended.usage.as_ref().and_then(|usage| tokens(&usage.tokens)) {
        idle["usage"] = usage;
    }
    idle
}

/// Returns `None` if the agent did not report what version 2 wants.
fn tokens(tokens: &Tokens) -> Option<Value> {
    let (input, output) = (tokens.input?, tokens.output?);
    let total = tokens.total.unwrap_or(input.saturating_add(output));
    let mut usage = json!({ "totalTokens": total, "inputTokens": input, "outputTokens": output });
    let parts = [
        ("thoughtTokens", tokens.thought),
        ("cachedReadTokens", tokens.cached_read),
        ("cachedWriteTokens", tokens.cached_write),
    ];
    for (name, count) in parts {
        if let Some(count) = count {
            usage[name] = count.into();
        }
    }
    Some(usage)
}

fn state_update(session: &str, state: TurnState) -> Bytes {
    update(session, &state_of_turn(state))
}

fn state_of_turn(state: TurnState) -> Value {
    let state = match state {
        TurnState::Idle => "idle",
        TurnState::Working => "running",
        TurnState::NeedsAction => "requires_action",
    };
    json!({ "sessionUpdate": "state_update", "state": state })
}

/// The state of a session at the end of its journal.
pub(crate) fn state_now(journal: JournalHead<'_>) -> Bytes {
    let mut state = state_of_turn(journal.state);
    let item = |work: &BackgroundWork| {
        let (_, member) = work.kind.cancel();
        json!({ "type": work.kind, member: work.id })
    };
    if let Some(background) = journal.background {
        state["background"] = background.iter().map(item).collect();
    }
    update(journal.public_id, &state)
}

/// Ends a turn for a client that leaves its session.
pub(crate) fn cancelled(session: &str) -> Bytes {
    let idle =
        json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled" });
    update(session, &idle)
}

pub(crate) fn replay_complete(session: &str) -> Bytes {
    update(session, &json!({ "sessionUpdate": "replay_complete" }))
}

fn notice(session: &str, text: &str) -> Bytes {
    update(session, &json!({ "sessionUpdate": "notice", "severity": "info", "title": text }))
}

fn update(session: &str, update: &Value) -> Bytes {
    build::notification("session/update", &json!({ "sessionId": session, "update": update }))
}
