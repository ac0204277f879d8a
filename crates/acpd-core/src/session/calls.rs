//! Tool calls of loaded sessions, as their agents announce them.

use acp_wire::bound::LONGEST_ID;
use acp_wire::str_at;

use crate::session::{OPEN_TOOLS, Session};
use crate::tool_calls::call::Call;
use crate::tool_calls::frozen::call_in;

impl Session {
    pub(crate) fn known_call(&self, line: &[u8]) -> Call {
        let Some(name) = self.name_at(line, "toolCall") else { return Call::default() };
        let known = self.calls.get(&name);
        known.cloned().unwrap_or_else(|| self.new_call(&name))
    }

    pub(crate) fn note_asked(&mut self, line: &[u8]) {
        if let Some(name) = self.name_at(line, "toolCall") {
            self.note_call(&name, &call_in(line));
        }
    }

    /// Many agents describe a call when it begins, and ask with little more than its id.
    pub(crate) fn note_call(&mut self, name: &str, update: &[u8]) {
        if let Some(call) = self.call_mut(name) {
            call.take(update);
            call.shrink_if_over();
        }
    }

    /// Returns `None` without room for another call.
    pub(crate) fn call_mut(&mut self, name: &str) -> Option<&mut Call> {
        if !self.calls.contains_key(name) {
            if !self.has_room_for(name) {
                return None;
            }
            let new = self.new_call(name);
            self.calls.insert(name.to_owned(), new);
        }
        self.calls.get_mut(name)
    }

    fn has_room_for(&self, name: &str) -> bool {
        name.len() <= LONGEST_ID && self.calls.len() < OPEN_TOOLS
    }

    /// Returns a call whose earlier reports may be lost: to the last daemon, or for lack of room.
    fn new_call(&self, name: &str) -> Call {
        let is_whole = self.running.as_ref().is_none_or(|turn| turn.whole);
        let is_open = self.row.open_tools.contains(name);
        // Open calls of subagents are not recorded.
        let was_told = is_open || name.contains('\n');
        // A call may outlive its turn, and then its reports are gone.
        let is_known = if is_whole { self.has_room_for(name) && !is_open } else { !was_told };
        if is_known { Call::default() } else { Call::unknown() }
    }

    /// `member`: `update`, or `toolCall` of a question.
    pub(crate) fn name_at(&self, line: &[u8], member: &str) -> Option<String> {
        let id = str_at(line, &["params", member, "toolCallId"])?;
        let session = str_at(line, &["params", "sessionId"]);
        // A session and its children may use the same ids.
        match session.filter(|session| *session != self.row.public_id) {
            Some(child) => Some(format!("{child}\n{id}")),
            None => Some(id.into_owned()),
        }
    }
}
