//! Messages and calls that lines of a journal are about, see [`EventRow::entity`].
//!
//! [`EventRow::entity`]: crate::record::EventRow::entity

use std::borrow::Cow;
use std::collections::BTreeMap;

use acp_wire::{UpdateClass, classify_update, message_id, str_at};

use crate::hash::hash;
use crate::ids::Seq;
use crate::record::{EventKind, OpenMessage, is_about_turn};
use crate::session::child::{MOST, SESSION, member};

/// Messages that the next chunk may continue: one of the session, and one of each subagent. The
/// start and the end of a turn end them all.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// By the hash of the subagent's public id; `None` for the session itself.
    open: BTreeMap<Option<u64>, OpenMessage>,
}

impl Messages {
    /// Restores the session's message that an earlier daemon kept.
    pub(crate) fn recovered(kept: Option<OpenMessage>) -> Messages {
        Messages { open: kept.map(|open| (None, open)).into_iter().collect() }
    }

    /// Returns the session's message if the agent has named it: its chunks are known again. Others
    /// are known by the lines between them only.
    pub(crate) fn named(&self) -> Option<&OpenMessage> {
        self.open.get(&None).filter(|open| open.id.is_some())
    }

    /// Returns the entity of the next line. `update`: the kind of the update, if the caller has read
    /// it. `turn`: the number of the last dispatched turn.
    pub(crate) fn note_line(
        &mut self,
        (kind, update): (EventKind, Option<&str>),
        line: &[u8],
        seq: Seq,
        turn: u64,
    ) -> Option<u64> {
        match kind {
            EventKind::Update | EventKind::Imported | EventKind::Child => {}
            EventKind::Notice => {
                if is_about_turn(line) {
                    self.open.clear();
                }
                return None;
            }
            EventKind::State(_) | EventKind::Live | EventKind::Extension | EventKind::Banner => {
                return None;
            }
        }
        let update = update.map(Cow::Borrowed).or_else(|| member(line, "sessionUpdate"))?;
        let session = || hash(&str_at(line, SESSION).unwrap_or_default());
        let child = (kind == EventKind::Child).then(session);
        match classify_update(&update) {
            UpdateClass::Conversation => {
                let id = message_id(line).map(|id| hash(&id));
                let open = self.open.get(&child);
                if let Some(open) = open.filter(|open| open.update == update && open.id == id) {
                    return Some(open.first);
                }
                // Subagents that ended within a message.
                if self.open.len() > MOST {
                    self.open.clear();
                }
                let update = update.into_owned();
                self.open.insert(child, OpenMessage { first: seq, update, id });
                Some(seq)
            }
            UpdateClass::ToolCall => {
                self.open.remove(&child);
                Some(turn)
            }
            UpdateClass::Other => {
                self.open.remove(&child);
                None
            }
            // A subagent's state.
            UpdateClass::State(_) | UpdateClass::Live | UpdateClass::NotAsked => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_wire::StateKey;
    use acpd_api::method;
    use serde_json::json;

    use super::*;

    const TURN: u64 = 100;

    /// Returns the entities of these lines, which have the positions from 1: kind, session, kind of
    /// update or method, `messageId`.
    fn entities(lines: &[(EventKind, &str, &str, &str)]) -> Vec<u64> {
        let mut messages = Messages::default();
        let entity = |((kind, session, name, id), seq)| {
            let update = json!({"sessionUpdate": name, "messageId": id});
            let line = json!({"method": name, "params": {"sessionId": session, "update": update}});
            let update = Some(name).filter(|_| seq % 2 == 0);
            let line = line.to_string();
            messages.note_line((kind, update), line.as_bytes(), seq, TURN).unwrap_or(0)
        };
        lines.iter().copied().zip(1..).map(entity).collect()
    }

    #[test]
    fn chunks_continue_the_message_before_them() {
        use EventKind::{Banner, Extension, Imported, Live, Notice, State, Update};
        let [user, text, thought] =
            ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"];
        let others = [
            (State(StateKey::Usage), "usage_update"),
            (Live, "notice"),
            (Notice, method::NOTICE),
            (Extension, "_x/y"),
            (Banner, text),
        ];
        for kind in [Update, Imported] {
            let line = |name| (kind, "s", name, "");
            let with_id = |id| (kind, "s", text, id);
            for (other, name) in others {
                let lines = [line(text), line(text), (other, "s", name, ""), line(text)];
                assert_eq!(entities(&lines), [1, 1, 0, 1], "{name}");
            }
            for name in [method::TURN_STARTED, method::TURN_ENDED] {
                let lines = [line(user), line(user), (Notice, "s", name, ""), line(user)];
                assert_eq!(entities(&lines), [1, 1, 0, 4], "{name}");
            }
            for (name, entity) in
                [("tool_call", TURN), ("tool_call_update", TURN), ("plan_update", 0)]
            {
                let lines = [line(text), line(name), line(text), line(text)];
                assert_eq!(entities(&lines), [1, entity, 3, 3], "{name}");
            }
            let lines = [line(text), line(thought), line(thought), line(text), line(user)];
            assert_eq!(entities(&lines), [1, 2, 2, 4, 5]);
            let lines = [with_id("a"), with_id("a"), with_id("b"), with_id("a")];
            assert_eq!(entities(&lines), [1, 1, 3, 4]);
        }
    }

    #[test]
    fn messages_of_subagents_are_their_own() {
        let child = |session, name| (EventKind::Child, session, name, "");
        let text = "agent_message_chunk";
        let own = (EventKind::Update, "s", text, "");
        let call = child("c", "tool_call_update");
        let lines = [own, child("c", text), child("d", text), own, child("c", text), call];
        assert_eq!(entities(&lines), [1, 2, 3, 1, 2, TURN]);
        let state = child("c", "usage_update");
        let ended = (EventKind::Notice, "s", method::TURN_ENDED, "");
        let lines = [child("c", text), state, child("c", text), ended, child("c", text)];
        assert_eq!(entities(&lines), [1, 0, 1, 0, 5]);
    }
}
