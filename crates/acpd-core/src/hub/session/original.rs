//! Lines of agents of version 2 as they are, for clients of that version. The engine works with what
//! they mean in version 1, see [`acp_wire::dialect`].
//!
//! | The agent says | In the journal |
//! | --- | --- |
//! | a line that both versions have | the line, as `Same` |
//! | another line | the line, as `Second`; what it means, as `Meaning` |
//! | the prompt | the line, as `Echo` |
//! | a state | the line, as `Echo`, which is no part of a history |
//! | modes, options, commands | what it means, as `Converted` |
//!
//! The prompt and the beginning of its turn are `First`, because the agent tells both itself. So is
//! the end, unless the agent could not tell it. Lines that come while a session is restored are
//! `Converted`.

use acp_wire::dialect::{TalkState, text_said};
use acp_wire::str_at;
use acpd_api::TurnState;
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::{Process, SessionKey};
use crate::record::{EventKind, LineForm, PromptMessage};
use crate::session::child::{SESSION, member};
use crate::session::turn::Running;

impl Hub {
    pub(crate) fn keep_original(&mut self, process: Process, line: &Bytes, form: LineForm) {
        let Some(key) = self.kept_for(process, line) else { return };
        // Not every line has a meaning in version 1.
        let now = self.cx.now;
        let session = self.sessions.session_mut(key);
        session.activity.last_line = Some(now);
        if let Some(running) = session.running.as_mut() {
            running.last_line = now;
        }
        if self.session(key).running.as_ref().is_some_and(|running| is_shown(running, line)) {
            return;
        }
        let line = self.sessions.to_public_id(key, line.clone());
        let kind = self.session(key).kind_on(&str_at(&line, SESSION).unwrap_or_default());
        self.append_as(key, form, (kind, None), line, None);
    }

    pub(crate) fn state_told(
        &mut self,
        process: Process,
        agent_id: &str,
        state: TalkState,
        line: &Bytes,
    ) {
        let Some(key) = self.kept_for(process, line) else { return };
        let line = self.sessions.to_public_id(key, line.clone());
        self.append_as(key, LineForm::Echo, (EventKind::Live, None), line, None);
        let session = self.sessions.session_mut(key);
        if session.row.agent_id != agent_id {
            return;
        }
        let told = match state {
            TalkState::Idle => TurnState::Idle,
            TalkState::Running => TurnState::Working,
            TalkState::RequiresAction => TurnState::NeedsAction,
        };
        if std::mem::replace(&mut session.told, told) != told {
            session.row.edit().agent_state = told;
            self.lease(process.slot);
            self.check_idle(process.slot);
        }
    }

    fn kept_for(&self, process: Process, line: &Bytes) -> Option<SessionKey> {
        let session = str_at(line, SESSION)?;
        let key = self.sessions.routed(process.slot, &session)?;
        self.keeps_originals(key).then_some(key)
    }
}

/// Returns whether a line is a message that was added to the turn, which the clients have already.
fn is_shown(running: &Running, line: &Bytes) -> bool {
    let is_other = || match &running.message {
        Some(PromptMessage::Agents(prompt)) => member(line, "messageId").as_deref() != Some(prompt),
        Some(PromptMessage::Own(_)) => true,
        None => false,
    };
    !running.added.is_empty()
        && member(line, "sessionUpdate").is_some_and(|kind| kind.starts_with("user"))
        && is_other()
        && running.is_added(&text_said(line))
}
