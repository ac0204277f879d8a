//! Freezes the tool call of a permission question, and asks again when the agent changes it. Called
//! when an agent asks and when it updates a call.

use acp_wire::{ErrorObject, build, code, str_at};
use acpd_api::{PermissionDecided, method};
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey, SlotId};
use crate::input::Batch;
use crate::questions::{AskedBy, Interaction};
use crate::record::{EventKind, InteractionRow};
use crate::tool_calls::call::{Call, update_in};
use crate::tool_calls::frozen::Frozen;

/// For clients that are not shown it in the question itself.
const CHANGED: &str = "The agent changed a tool call while you were asked about it. The question was \
                       withdrawn; look at the new one before you answer it.";

/// How often an agent may change a call while a person is asked about it.
const CHANGES: u32 = 16;

impl Hub {
    /// An update of a call, which is in the journal: questions about a changed call are withdrawn
    /// and asked again.
    pub(crate) fn call_told(&mut self, key: SessionKey, line: &Bytes, out: &mut Batch) {
        if !self.questions.are_open(key) {
            return;
        }
        let Some(id) = str_at(line, &["params", "update", "toolCallId"]) else { return };
        let session = str_at(line, &["params", "sessionId"]);
        let name = self.sessions.call_name(key, session.as_deref(), &id).into_owned();
        let change = |call: &mut Call| {
            call.take(update_in(line));
        };
        self.change_asked(key, &name, change, out);
    }

    /// The call was sanitised: never decide it by rule, and ask again if its question is open.
    pub(crate) fn doubt_call(&mut self, slot: SlotId, line: &[u8], out: &mut Batch) {
        let call = str_at(line, &["params", "update", "toolCallId"]);
        let session = str_at(line, &["params", "sessionId"]);
        let (Some(call), Some(session)) = (call, session) else { return };
        let Some(key) = self.sessions.routed(slot, &session) else { return };
        let name = self
            .sessions
            .call_name(key, Some(self.sessions.public_of(key, &session)), &call)
            .into_owned();
        if let Some(call) = self.sessions.call_mut(key, &name) {
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
        for interaction in self.questions.of_session(key) {
            let Some(open) = self.questions.get(interaction) else { continue };
            let Some(frozen) = &open.frozen else { continue };
            if open.asked_by == AskedBy::Budget
                || self.sessions.name_of_asked(key, &open.line).as_deref() != Some(name)
            {
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
        let Interaction { asked_by, line, question, frozen: Some(frozen), .. } = old else {
            return;
        };
        let AskedBy::Agent { host, request } = asked_by else { return };
        let Some(slot) = self.processes.slot_of(host) else { return };
        if frozen.changed >= CHANGES {
            let why =
                format!("the agent changed the call {CHANGES} times while a person was asked");
            let error = ErrorObject::new(code::INVALID_PARAMS, format!("refused: {why}"));
            self.processes.write(slot, build::error(&request, &error), out);
            let decided = frozen.decided(&self.session(key).row.public_id, why);
            return self.tell_decided(key, &decided, out);
        }
        // The agent's last values replace those of the question.
        let line = call.put_into(&line);
        let frozen = Box::new(Frozen::of(call, frozen.changed + 1));
        self.banner(key, CHANGED, out);
        if let Some(answer) = self.decided(key, &frozen, &question, out) {
            self.processes.write(slot, build::response(&request, &answer), out);
            return;
        }
        let (id, session, at) = (InteractionId(self.ids.issue()), Some(key), self.now);
        let row = InteractionRow { id, session, host, line, at, frozen: Some(frozen) };
        self.open_interaction(row, request, question, out);
    }

    /// Notes in the journal that no person was asked.
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
