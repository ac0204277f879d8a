//! An agent's notification about a session, with the parts that every reader needs.

use std::borrow::Cow;

use acp_wire::{UpdateClass, classify_update, session_and_kind};
use bytes::Bytes;
use serde_json::value::RawValue;

#[derive(Debug)]
pub(crate) struct ReadLine<'l> {
    pub(crate) method: &'l str,
    /// The session, or a subagent of it, by the agent's id.
    pub(crate) session: Cow<'l, str>,
    pub(crate) kind: Option<Cow<'l, str>>,
    pub(crate) line: &'l Bytes,
}

impl<'l> ReadLine<'l> {
    /// Returns `None` if the notification is about no session.
    pub(crate) fn new(
        method: &'l str,
        params: Option<&'l RawValue>,
        line: &'l Bytes,
    ) -> Option<ReadLine<'l>> {
        let (session, kind) = session_and_kind(params?.get())?;
        Some(ReadLine { method, session, kind, line })
    }

    pub(crate) fn is_update(&self) -> bool {
        self.method == "session/update"
    }

    pub(crate) fn class(&self) -> UpdateClass {
        self.kind.as_deref().map_or(UpdateClass::Other, classify_update)
    }
}
