//! Tool calls of loaded sessions, as their agents announce them.

use acp_wire::bound::LONGEST_ID;
use acp_wire::str_at;

use crate::ids::SessionKey;
use crate::session::OPEN_TOOLS;
use crate::session::table::Sessions;
use crate::tool_calls::call::Call;
use crate::tool_calls::frozen::call_in;

impl Sessions {
    pub(crate) fn known_call(&self, key: SessionKey, line: &[u8]) -> Call {
        let Some(name) = self.name_of_asked(key, line) else { return Call::default() };
        let known = self.session(key).calls.get(&name);
        known.cloned().unwrap_or_else(|| self.new_call(key, &name))
    }

    pub(crate) fn note_asked(&mut self, key: SessionKey, line: &[u8]) {
        if let Some(name) = self.name_of_asked(key, line) {
            self.note_call(key, &name, &call_in(line));
        }
    }

    /// Many agents describe a call when it begins, and ask with little more than its id.
    pub(crate) fn note_call(&mut self, key: SessionKey, name: &str, update: &[u8]) {
        if let Some(call) = self.call_mut(key, name) {
            call.take(update);
            call.shrink_if_over();
        }
    }

    /// Returns `None` without room for another call.
    pub(crate) fn call_mut(&mut self, key: SessionKey, name: &str) -> Option<&mut Call> {
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

    /// Returns a call whose earlier reports may be lost: to the last daemon, or for lack of room.
    fn new_call(&self, key: SessionKey, name: &str) -> Call {
        let session = self.session(key);
        let is_whole = session.running.as_ref().is_none_or(|turn| turn.whole);
        // Open calls of subagents are not recorded.
        let was_told = session.row.open_tools.contains(name) || name.contains('\n');
        let is_known = if is_whole { self.has_room_for(key, name) } else { !was_told };
        if is_known { Call::default() } else { Call::unknown() }
    }

    pub(crate) fn name_of_updated(&self, key: SessionKey, line: &[u8]) -> Option<String> {
        self.name_at(key, line, "update")
    }

    pub(crate) fn name_of_asked(&self, key: SessionKey, line: &[u8]) -> Option<String> {
        self.name_at(key, line, "toolCall")
    }

    fn name_at(&self, key: SessionKey, line: &[u8], member: &str) -> Option<String> {
        let id = str_at(line, &["params", member, "toolCallId"])?;
        let session = str_at(line, &["params", "sessionId"]);
        Some(self.call_name(key, session.as_deref(), &id).into_owned())
    }
}
