//! Child sessions: the subagents of a session, with ids of their own.
//!
//! ```text
//!  subagent_update ─▶ known ── its lines, questions and requests are those of the session
//!     (on the session, or on a child of it)
//!                       ├── too many, and it is not busy ─▶ forgotten
//!                       └── session closed, process gone ─▶ over, reported to clients
//! ```
//!
//! A child has no journal, queue or clients of its own: it is a second id of its session in the
//! table of routes. Its lines are in the session's journal, in order, and shown to clients that
//! show subagents. The other clients get its questions, too, under the session's id.

use acp_wire::{UpdateClass, build, classify_update, locate, set_member, str_at};
use bytes::Bytes;
use serde_json::json;

use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey, SlotId};
use crate::record::{Child, EventKind, LineForm};
use crate::session::Session;
use crate::session::child::{SESSION, member};
use crate::session::restore::Restore;
use crate::session::turn::is_work;
use crate::tool_calls::call::update_in;

const STATE: &[&str] = &["params", "update", "state"];

fn says_busy(line: &[u8]) -> bool {
    let state = str_at(line, &["params", "update", "state", "state"]);
    matches!(state.as_deref(), Some("running" | "requires_action"))
}

impl Hub {
    /// Must be called before the update is journalled. Returns the agent's id of a new child, or
    /// why the update cannot be shown.
    pub(crate) fn announce_child(
        &mut self,
        slot: SlotId,
        key: SessionKey,
        line: &[u8],
    ) -> Result<Option<String>, String> {
        let Some(id) = member(line, "sessionId") else { return Ok(None) };
        let seq = self.session(key).head + 1;
        let is_replay = self.session(key).restore().is_some_and(Restore::replays);
        let is_new = match self.sessions.routed(slot, &id) {
            None => {
                self.sessions.new_child(key, &id, line)?;
                true
            }
            Some(of) if of == key && self.session(key).row.children.contains_key(&*id) => false,
            Some(_) => return Err(format!("`{id}` is no new session, so no child either")),
        };
        let Some(before) = self.session(key).row.children.get(&*id) else { return Ok(None) };
        let mut child = before.clone();
        if locate(line, &["params", "update", "capabilities"]).is_some() {
            let cancel = locate(line, &["params", "update", "capabilities", "cancel"]);
            child.cancel = cancel.is_some_and(|at| matches!(line[at.start], b'{' | b't'));
        }
        // A child that works in a replay may have ended since, without an update.
        if !is_replay && locate(line, STATE).is_some() {
            child.busy = says_busy(line);
        }
        if is_new || child != *before {
            child.seq = seq;
            self.session_mut(key).row.edit().children.insert(id.clone().into_owned(), child);
            self.lease(slot);
            self.check_idle(slot);
        }
        Ok(is_new.then(|| id.into_owned()))
    }

    pub(crate) fn child_told(
        &mut self,
        key: SessionKey,
        (kind, form): (Option<&str>, LineForm),
        line: Bytes,
    ) {
        let class = kind.map(classify_update);
        // News cannot be told from a replay here: only the session's own prompts are compared.
        if !self.has_live_children(key) {
            self.replay_goes_on(key);
            return self.session_mut(key).remember_announcement(&line);
        }
        let now = self.cx.now;
        if class == Some(UpdateClass::ToolCall)
            && let Some(call) = self.session(key).name_at(&line, "update")
        {
            self.session_mut(key).note_call(&call, update_in(&line));
        }
        let session = self.session_mut(key);
        session.activity.last_line = Some(now);
        if let Some(running) = session.running.as_mut() {
            running.last_line = now;
            let first = class.is_some_and(is_work).then(|| running.touch(now)).flatten();
            if matches!(class, Some(UpdateClass::Conversation | UpdateClass::ToolCall)) {
                session.note_spoken();
            }
            self.tally.first_update(first);
        }
        self.append_as(key, form, (EventKind::Child, kind), line.clone(), None);
        if class == Some(UpdateClass::ToolCall) {
            self.on_call_updated(key, &line);
        }
    }

    pub(crate) fn has_live_children(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let Some(restore) = session.restore() else { return true };
        let host = self.processes[&session.slot].usable_host();
        restore.hears_news() && !session.is_doubtful_at(host)
    }

    /// Shows the children that a replay has announced and the session still has.
    pub(crate) fn tell_announced(&mut self, key: SessionKey, announced: Vec<(String, Bytes)>) {
        for (id, mut line) in announced {
            let children = &self.session(key).row.children;
            let Some(child) = children.values().find(|child| child.public_id == id) else {
                continue;
            };
            if says_busy(&line) && !child.busy {
                line = set_member(&line, STATE, br#"{"state":"unknown"}"#);
            }
            let kind = self.session(key).kind_on(&str_at(&line, SESSION).unwrap_or_default());
            self.append(key, kind, line, None);
        }
    }

    pub(crate) fn end_children(&mut self, key: SessionKey) {
        let Session { slot, row, .. } = self.session(key);
        let (slot, ids) = (*slot, row.children.keys().cloned().collect::<Vec<_>>());
        for id in ids {
            if let Some(child) = self.sessions.remove_child(key, &id) {
                self.tell_child_over(key, &child);
            }
        }
        self.lease(slot);
    }

    pub(crate) fn tell_child_over(&mut self, key: SessionKey, child: &Child) {
        if !child.is_open() {
            return;
        }
        let mut update = json!({ "sessionUpdate": "subagent_update",
            "sessionId": child.public_id, "capabilities": null });
        if child.busy {
            update["state"] = json!({ "state": "unknown" });
        }
        let kind = self.session(key).kind_on(&child.parent);
        let params = json!({ "sessionId": child.parent, "update": update });
        self.append(key, kind, build::notification("session/update", &params), None);
    }

    /// `session/cancel` with the id of a child: ends the child's work only.
    pub(crate) fn cancel_child(&mut self, client: ClientId, agent: &str, id: &str, line: &Bytes) {
        let Some((key, own, child)) = self.sessions.child_by_public_id(agent, id) else { return };
        let slot = self.session(key).slot;
        let can = child.cancel && self.clients.may_control(client, key).is_ok();
        if !can || self.processes.is_clogged(slot) || self.cx.is_failing() {
            return;
        }
        let line = if own == id {
            line.clone()
        } else {
            set_member(line, SESSION, json!(own).to_string().as_bytes())
        };
        self.processes.write(&mut self.cx, slot, line);
        self.end_questions(key, self.questions.of_asker(key, id));
    }
}
