//! Ids and announcements of child sessions. The diagram is in `hub/session/child.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use acp_wire::{locate, set_member, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::ids::SessionKey;
use crate::record::{Child, EventKind};
use crate::session::table::Sessions;
use crate::session::{Session, State};

const ID_BYTES: usize = 1 << 10;

/// Maximum number of subagents of a session.
pub(super) const MOST: usize = 64;

/// Maximum length of an update of one child in a replay, in bytes.
const ANNOUNCEMENT_BYTES: usize = 256 << 10;

pub(crate) const SESSION: &[&str] = &["params", "sessionId"];

pub(crate) fn member<'a>(line: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    str_at(line, &["params", "update", name])
}

fn merged(first: &Bytes, second: &Bytes) -> Bytes {
    let members = locate(second, &["params", "update"])
        .and_then(|at| serde_json::from_slice::<BTreeMap<String, &RawValue>>(&second[at]).ok());
    members.into_iter().flatten().fold(first.clone(), |line, (name, value)| {
        set_member(&line, &["params", "update", &name], value.get().as_bytes())
    })
}

impl Session {
    /// Keeps an announcement until the session is restored. Other lines are dropped.
    pub(crate) fn remember_announcement(&mut self, line: &Bytes) {
        if member(line, "sessionUpdate").as_deref() != Some("subagent_update") {
            return;
        }
        let Some(id) = member(line, "sessionId") else { return };
        let State::Restoring(restore) = &mut self.state else { return };
        let is_known = |id: &str| self.row.children.values().any(|child| child.public_id == id);
        restore.announced.retain(|(id, _)| is_known(id));
        let before = restore.announced.iter_mut().find(|(of, _)| *of == id);
        let all = before
            .as_ref()
            .map_or_else(|| Bytes::copy_from_slice(line), |(_, before)| merged(before, line));
        match before {
            _ if all.len() > ANNOUNCEMENT_BYTES => {}
            Some((_, before)) => *before = all,
            None => restore.announced.push((id.into_owned(), all)),
        }
    }

    /// `public_id`: of the session or child that announced this one.
    pub(crate) fn kind_on(&self, public_id: &str) -> EventKind {
        let is_own = public_id == self.row.public_id;
        if is_own { EventKind::Update } else { EventKind::Child }
    }

    pub(crate) fn public_of(&self, id: &str) -> &str {
        self.row.children.get(id).map_or(&self.row.public_id, |child| &child.public_id)
    }
}

impl Sessions {
    pub(crate) fn new_child(
        &mut self,
        key: SessionKey,
        id: &str,
        line: &[u8],
    ) -> Result<(), String> {
        if id.len() > ID_BYTES {
            return Err(format!("the id of the child has {} bytes", id.len()));
        }
        let children = &self.session(key).row.children;
        if children.len() >= MOST {
            let resting = children.iter().filter(|(_, child)| !child.busy);
            let oldest = resting.min_by_key(|(_, child)| child.seq).map(|(id, _)| id.clone());
            let oldest = oldest.ok_or_else(|| format!("{MOST} subagents are at work already"))?;
            self.remove_child(key, &oldest);
        }
        let agent = &self.session(key).row.agent;
        let mut public_id = id.to_owned();
        while self.is_taken(agent, &public_id) {
            public_id = format!("{public_id}.{}", key.0);
        }
        let parent = str_at(line, SESSION).unwrap_or_default();
        let parent = self.session(key).public_of(&parent).to_owned();
        let child = Child { public_id, parent, cancel: false, busy: false, seq: 0 };
        self.add_child(key, id, child);
        Ok(())
    }

    /// Agents accept no requests about children.
    pub(crate) fn refuse_for_child(
        &self,
        agent: &str,
        method: &str,
        id: &str,
    ) -> Result<(), Fault> {
        let Some((key, _, child)) = self.child_by_public_id(agent, id) else {
            return Ok(());
        };
        if matches!(method, "session/load" | "session/resume") {
            return Err(Fault::no_session(id));
        }
        let parent = &self.session(key).row.public_id;
        let text = format!("`{id}` is the session of a subagent, which takes no `{method}`");
        let hint = if child.cancel {
            format!("`session/cancel` ends what it does; all else is for `{parent}`")
        } else {
            format!("talk with its agent in `{parent}`")
        };
        Err(Fault::invalid(text).session(parent).hint(hint))
    }

    pub(crate) fn to_public_id(&self, key: SessionKey, line: Bytes) -> Bytes {
        let kind = member(&line, "sessionUpdate").map(Cow::into_owned);
        self.update_to_public_id(key, line, kind.as_deref())
    }

    /// Like [`Sessions::to_public_id`], for a line whose kind of update is known.
    pub(crate) fn update_to_public_id(
        &self,
        key: SessionKey,
        line: Bytes,
        kind: Option<&str>,
    ) -> Bytes {
        let row = &self.session(key).row;
        let line = if row.agent_id == row.public_id && row.children.is_empty() {
            line
        } else {
            self.translated(key, line, SESSION)
        };
        match kind {
            Some("subagent_update") => {
                self.translated(key, line, &["params", "update", "sessionId"])
            }
            Some("session_message") => {
                let line = self.translated(key, line, &["params", "update", "senderSessionId"]);
                self.translated(key, line, &["params", "update", "recipientSessionId"])
            }
            _ => line,
        }
    }

    pub(crate) fn to_public_id_in_error(&self, key: SessionKey, line: Bytes) -> Bytes {
        let row = &self.session(key).row;
        if row.agent_id == row.public_id && row.children.is_empty() {
            return line;
        }
        self.translated(key, line, &["error", "data", "sessionId"])
    }

    /// Replaces the agent's id at a path with the public one. Unknown ids stay.
    fn translated(&self, key: SessionKey, line: Bytes, path: &[&str]) -> Bytes {
        let Session { slot, row, .. } = self.session(key);
        let Some(id) = str_at(&line, path) else { return line };
        let of = if *id == row.agent_id { Some(key) } else { self.routed(*slot, &id) };
        let public = of.map(|of| self.session(of).public_of(&id));
        match public.filter(|public| *public != id).map(|public| json!(public).to_string()) {
            Some(public) => set_member(&line, path, public.as_bytes()),
            None => line.clone(),
        }
    }
}
