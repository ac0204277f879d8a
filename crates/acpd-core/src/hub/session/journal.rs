//! Lines for the journal of a session, which are shown at once.

use acp_wire::acp::Update;
use acp_wire::{StateKey, build};
use acpd_api::{SessionNotice, StateChanged, TurnState, Untrusted, method};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::record::{EventKind, EventRow, LineForm, Record};
use crate::session::Session;
use crate::session::restore::values_of;

impl Hub {
    pub(crate) fn session(&self, key: SessionKey) -> &Session {
        &self.sessions[&key]
    }

    pub(crate) fn session_mut(&mut self, key: SessionKey) -> &mut Session {
        self.sessions.session_mut(key)
    }

    /// Returns whether clients of version 2 get the lines of the session's agent as they are.
    pub(crate) fn keeps_originals(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        session.is_live() && self.processes.version_of(session.slot).tells_states()
    }

    /// The form of a line that the agent says itself to clients of version 2.
    pub(crate) fn form_without_agent(&self, key: SessionKey) -> LineForm {
        if self.keeps_originals(key) { LineForm::First } else { LineForm::default() }
    }

    /// Keeps the mode in force, and shows it to all clients except the one that set it.
    pub(crate) fn tell_mode(&mut self, key: SessionKey, mode: &str, by: Option<ClientId>) {
        self.session_mut(key).note_mode(mode.to_owned());
        let update = Update::CurrentModeUpdate { current_mode_id: mode };
        let line = self.session(key).update_line(update);
        self.append(key, EventKind::State(StateKey::Mode), line, by);
    }

    /// Keeps the options of an answer, and shows them to all clients except the one that set one.
    pub(crate) fn tell_options(
        &mut self,
        key: SessionKey,
        result: &RawValue,
        by: Option<ClientId>,
    ) {
        let (_, Some(config_options)) = values_of(result) else { return };
        self.sessions.session_mut(key).take_values(&mut self.cx, (None, Some(config_options)));
        self.show_options(key, config_options, by);
    }

    pub(crate) fn show_options(
        &mut self,
        key: SessionKey,
        config_options: &RawValue,
        by: Option<ClientId>,
    ) {
        let line = self.session(key).update_line(Update::ConfigOptionUpdate { config_options });
        self.append(key, EventKind::State(StateKey::Options), line, by);
    }

    pub(crate) fn tell_state(&mut self, key: SessionKey) {
        let line = self.state_line(key);
        self.clients.tell_attached(&mut self.cx, key, &line);
        self.tell_turn_state(key);
    }

    /// Tells clients of versions with states how the turn stands, unless they know it, or the agent
    /// tells it.
    pub(crate) fn tell_turn_state(&mut self, key: SessionKey) {
        if self.keeps_originals(key) {
            return;
        }
        let state = self.session(key).turn_state(self.questions.are_asked(key));
        let session = self.sessions.session_mut(key);
        if session.told != state {
            session.told = state;
            if session.row.agent_state != TurnState::Idle {
                session.row.edit().agent_state = TurnState::Idle;
            }
            self.clients.tell_turn_state(&mut self.cx, session.journal());
        }
    }

    pub(crate) fn state_line(&self, key: SessionKey) -> Bytes {
        let session = self.session(key);
        let id: Untrusted = session.row.public_id.clone().into();
        let changed = StateChanged {
            asked: self.questions.asked_about(key, &id),
            session_id: id,
            state: session.api_state(),
            archived: session.row.archived,
            turn: session.turn_state(self.questions.are_asked(key)),
            queued: session.queue.len() as u32,
            reason: session.row.reason.clone().map(Into::into),
            hint: session.way_out().map(Into::into),
        };
        build::notification(method::SESSION_STATE, &changed)
    }

    pub(crate) fn notice(&mut self, key: SessionKey, severity: &str, text: &str) {
        let notice = SessionNotice {
            session_id: self.session(key).row.public_id.clone().into(),
            severity: severity.into(),
            text: text.into(),
        };
        let line = build::notification(method::NOTICE, &notice);
        self.append(key, EventKind::Notice, line, None);
    }

    /// Closes open tool calls as failed, because no update will.
    pub(crate) fn close_tools(&mut self, key: SessionKey) {
        if self.session(key).row.open_tools.is_empty() {
            return;
        }
        let form = if self.keeps_originals(key) { LineForm::Same } else { LineForm::default() };
        let open = std::mem::take(&mut self.session_mut(key).row.edit().open_tools);
        for tool_call_id in open {
            let update = Update::ToolCallUpdate { tool_call_id: &tool_call_id, status: "failed" };
            let line = self.session(key).update_line(update);
            self.append_as(key, form, (EventKind::Update, None), line, None);
        }
    }

    /// Appends a line to a journal and shows it to all attached clients except its origin.
    pub(crate) fn append(
        &mut self,
        key: SessionKey,
        kind: EventKind,
        line: Bytes,
        origin: Option<ClientId>,
    ) {
        self.append_as(key, LineForm::default(), (kind, None), line, origin);
    }

    /// Like [`Hub::append`], for a line of any form whose kind of update may have been read already.
    pub(crate) fn append_as(
        &mut self,
        key: SessionKey,
        form: LineForm,
        (kind, update): (EventKind, Option<&str>),
        line: Bytes,
        origin: Option<ClientId>,
    ) {
        let session = self.sessions.session_mut(key);
        session.head += 1;
        let seq = session.head;
        let turn = session.row.prompts;
        let entity = match form {
            LineForm::Second | LineForm::Echo => None,
            _ => session.messages.note_line((kind, update), &line, seq, turn),
        };
        let cx = &mut self.cx;
        let (at, by) = (cx.now, origin.map(|client| self.clients.origin_of(cx, client)));
        let row = EventRow { session: key, seq, form, kind, at, line, origin: by, entity };
        self.clients.show(cx, session.journal(), (&row, update), origin);
        cx.record(Record::Event(row));
    }
}
