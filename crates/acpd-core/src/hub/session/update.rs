//! Updates of agents: which are journalled, and what of them counts later.

use acp_wire::bound::LONGEST_ID;
use acp_wire::{
    Message, StateKey, UpdateClass, locate, lossy_at, remove_member, set_member, str_at,
};
use acpd_api::{DoingKind, Tokens, TurnUsage};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::hash::hash;
use crate::hub::Hub;
use crate::ids::{Process, SessionKey};
use crate::params::raw_at;
use crate::read_line::ReadLine;
use crate::record::{EventKind, LineForm};
use crate::session::restore::Step;
use crate::session::turn::is_work;
use crate::tool_calls::call::update_in;

impl Hub {
    pub(crate) fn session_notified(
        &mut self,
        process: Process,
        key: SessionKey,
        read: &ReadLine<'_>,
        form: LineForm,
    ) {
        let (kind, class) = (read.kind.as_deref(), read.class());
        if read.is_update() && class == UpdateClass::NotAsked {
            let kind = kind.unwrap_or_default();
            let text = format!("skipped a `{kind}`, which nobody asked for");
            return self.cx.note(process.host, &text);
        }
        let child = match kind.filter(|_| read.is_update()) {
            Some("subagent_update") => match self.announce_child(process.slot, key, read.line) {
                Ok(child) => child,
                Err(reason) => {
                    let text = format!("skipped a `subagent_update`: {reason}");
                    return self.cx.note(process.host, &text);
                }
            },
            _ => None,
        };
        let line = self.sessions.update_to_public_id(key, read.line.clone(), kind);
        let form = match form {
            LineForm::Converted => form,
            _ if self.keeps_originals(key) => form,
            _ => LineForm::default(),
        };
        let is_list = read.is_update() && kind.is_none();
        if let Some(lines) = is_list.then(|| each_update(&line)).flatten() {
            for line in &lines {
                if let Some(one) = ReadLine::new(read.method, raw_at(line, &["params"]), line) {
                    let session = read.session.clone();
                    self.session_notified(process, key, &ReadLine { session, ..one }, form);
                }
            }
            return;
        }
        if self.session(key).row.children.contains_key(&*read.session) {
            self.child_told(key, (kind, form), line);
        } else if read.is_update() {
            self.on_update(key, (kind, class, form), line);
        } else {
            self.append_as(key, form, (EventKind::Extension, None), line, None);
        }
        if let Some(child) = child {
            self.deliver_parked(process, &child);
        }
    }

    fn on_update(
        &mut self,
        key: SessionKey,
        (update, class, form): (Option<&str>, UpdateClass, LineForm),
        mut line: Bytes,
    ) {
        let is_user = update == Some("user_message_chunk");
        let now = self.cx.now;
        let session = self.sessions.session_mut(key);
        if session.is_restoring() {
            if self.take_replayed(key, (update, class), &line) {
                return;
            }
        } else if let Some(running) = session.running.as_mut() {
            session.activity.last_line = Some(now);
            running.last_line = now;
            // Of a turn from an earlier daemon, acpd knows only the hash of the last text.
            let is_last = |text: &str| !running.whole && hash(text) == session.row.last_prompt;
            // Some agents echo the prompt, which is in the journal, in pieces.
            if is_user
                && let Some(text) = lossy_at(&line, &["params", "update", "content", "text"])
                && match form {
                    // No echo of the prompt: the translator knows those.
                    LineForm::Same => running.is_added(&text),
                    _ => running.is_said(&text) || is_last(&text),
                }
            {
                return;
            }
            let first = is_work(class).then(|| running.touch(now)).flatten();
            if matches!(class, UpdateClass::Conversation | UpdateClass::ToolCall) {
                running.echo = None;
                session.note_spoken();
            }
            self.tally.first_update(first);
            let kind = match update {
                Some("agent_message_chunk") => Some(DoingKind::Writing),
                Some("agent_thought_chunk") => Some(DoingKind::Thinking),
                _ => None,
            };
            if let Some(kind) = kind {
                session.activity.says(kind, now, &line);
            }
            self.note_failure(key, &line);
        } else {
            session.activity.last_line = Some(now);
            if session.is_late_replay(class, is_user) {
                return;
            }
        }
        let kind = match class {
            UpdateClass::Conversation | UpdateClass::Other => EventKind::Update,
            UpdateClass::ToolCall => {
                let of = |name| str_at(&line, &["params", "update", name]);
                if let Some(id) = of("toolCallId") {
                    let (is_new, status) = (update == Some("tool_call"), of("status"));
                    let session = self.session_mut(key);
                    session.note_call(&id, update_in(&line));
                    session.follow_tool(&id, is_new, status.as_deref(), now);
                }
                EventKind::Update
            }
            UpdateClass::Live | UpdateClass::NotAsked => EventKind::Live,
            UpdateClass::State(state_key) => {
                self.note_state(key, state_key, &line);
                if state_key == StateKey::Info {
                    line = self.session(key).with_title_that_counts(line);
                    line = self.session_mut(key).merge_info(line);
                }
                EventKind::State(state_key)
            }
        };
        self.append_as(key, form, (kind, update), line.clone(), None);
        if class == UpdateClass::Conversation {
            self.keep_message(key);
        }
        if class == UpdateClass::ToolCall {
            self.mirror_terminals(key, &line);
            self.on_call_updated(key, &line);
        }
    }

    /// Keeps a message that begins, so that the next daemon can continue it.
    fn keep_message(&mut self, key: SessionKey) {
        if !self.cx.config.newest.names_messages() {
            return;
        }
        let session = self.session(key);
        if session.messages.named().is_some_and(|open| open.first == session.head) {
            self.save_turn(key, None);
        }
    }

    fn note_state(&mut self, key: SessionKey, state_key: StateKey, line: &Bytes) {
        let restoring = self.session(key).is_restoring();
        match state_key {
            StateKey::Mode if !restoring => {
                let mode = str_at(line, &["params", "update", "currentModeId"])
                    .or_else(|| str_at(line, &["params", "update", "modeId"]));
                if let Some(mode) = mode.filter(|mode| mode.len() <= LONGEST_ID) {
                    self.session_mut(key).note_mode(mode.into_owned());
                }
            }
            StateKey::Options => {
                let options = raw_at(line, &["params", "update", "configOptions"]);
                self.sessions.session_mut(key).take_values(&mut self.cx, (None, options));
            }
            StateKey::Info => self.session_mut(key).note_title(line),
            StateKey::Usage => {
                for cost in self.session_mut(key).note_usage(line) {
                    self.book(key, None, TurnUsage { tokens: Tokens::default(), cost: Some(cost) });
                }
            }
            StateKey::Mode | StateKey::Plan | StateKey::Commands => {}
        }
    }

    pub(crate) fn deliver_parked(&mut self, process: Process, agent_id: &str) {
        for line in self.processes.take_parked(&mut self.cx, process, agent_id) {
            // Only notifications about a session are parked.
            if let Some(key) = self.sessions.routed(process.slot, agent_id)
                && let Ok(Message::Notification { method, params }) = acp_wire::parse(&line)
                && let Some(read) = ReadLine::new(&method, params, &line)
            {
                self.session_notified(process, key, &read, LineForm::default());
            }
        }
    }

    /// Takes an update of a session that is being restored. Returns `false` if it is journalled now.
    fn take_replayed(
        &mut self,
        key: SessionKey,
        (update, class): (Option<&str>, UpdateClass),
        line: &Bytes,
    ) -> bool {
        let is_child = update == Some("subagent_update");
        match class {
            UpdateClass::State(_) => return false,
            UpdateClass::Live | UpdateClass::NotAsked => return true,
            _ if is_child && self.has_live_children(key) => return false,
            UpdateClass::Conversation | UpdateClass::ToolCall | UpdateClass::Other => {}
        }
        if is_child {
            self.session_mut(key).remember_announcement(line);
        }
        let Some(restore) = self.sessions.restore_mut(key) else { return true };
        // Else at most the end of a turn that is over for acpd.
        if matches!(restore.step(), Step::Load | Step::Settle | Step::Settings) {
            if !is_child {
                let text = (update == Some("user_message_chunk"))
                    .then(|| str_at(line, &["params", "update", "content", "text"]))
                    .map(Option::unwrap_or_default);
                restore.replay.line(line.clone(), text.as_deref());
            }
            self.replay_goes_on(key);
        }
        true
    }
}

/// Splits an older form of updates, a list `updates`, into lines with one `update` each.
fn each_update(line: &Bytes) -> Option<Vec<Bytes>> {
    let list = raw_at(line, &["params", "updates"])?;
    if locate(line, &["params", "update"]).is_some() {
        return None;
    }
    let updates: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let line = remove_member(line, &["params", "updates"]);
    let one = |update: &RawValue| set_member(&line, &["params", "update"], update.get().as_bytes());
    Some(updates.into_iter().map(one).collect())
}
