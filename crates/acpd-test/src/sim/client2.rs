//! Clients of version 2 of the protocol: their requests, and the checks of what only they get:
//! states, the ends of replays, options as a whole, and ids of messages.

use acp_wire::{StateKey, Version, str_at};
use acpd_api::method::{TURN_ENDED, TURN_STARTED};
use acpd_core::Numbers;
use acpd_core::record::{EventKind, EventRow, LineForm};
use acpd_core::views::render;
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Asked, Client, Place};
use super::folded::text_of;
use super::store::{Journal, Store};
use super::truth::Truth;

/// Kinds of updates that acpd sends without a row of the journal.
const WITHOUT_ROW: [&str; 4] =
    ["state_update", "replay_complete", "config_option_update", "available_commands_update"];

/// Lines of a session so far.
#[derive(Debug, Default)]
pub(super) struct SessionLines {
    /// The last state, over all connections.
    pub(super) state: Option<String>,
    /// Kind of the last update on this connection, and whether it is a row.
    last: Option<(String, bool)>,
    /// The replay of the open request is complete: number of states since.
    complete: Option<u32>,
    /// The client has left the session, and sent nothing about it since.
    is_left: bool,
}

/// Returns a request of version 1 as version 2 has it.
pub(super) fn request(method: &str, mut params: Value) -> (&str, Value) {
    let method = match method {
        "session/load" => {
            params["replayFrom"] = json!({"type":"start"});
            "session/resume"
        }
        "session/set_mode" => {
            let [session, mode] = ["sessionId", "modeId"].map(|name| params[name].take());
            params = json!({"sessionId":session,"configId":"mode","value":mode,"type":"id"});
            "session/set_config_option"
        }
        "session/set_config_option" => {
            params["type"] = "id".into();
            method
        }
        "session/prompt" => {
            if let Some(key) = params.pointer_mut("/_meta/_acpd/idempotencyKey") {
                params["idempotencyKey"] = key.take();
                params["_meta"] = json!({});
            }
            method
        }
        "authenticate" => "auth/login",
        _ => method,
    };
    (method, params)
}

/// Returns the session that a request has the client follow, also if it is sent again.
fn named(asked: &Asked) -> Option<&String> {
    match asked {
        Asked::Mode { session } => Some(session),
        _ => prompted(asked),
    }
}

/// Returns whether a row says that a turn begins or ends. A replay has no such lines.
pub(super) fn is_state(row: &EventRow) -> bool {
    row.kind == EventKind::Notice && turn_runs_after(row).is_some()
}

fn turn_runs_after(row: &EventRow) -> Option<bool> {
    match &*str_at(&row.line, &["method"])? {
        TURN_STARTED => Some(true),
        TURN_ENDED => Some(false),
        _ => None,
    }
}

/// Returns whether the session works behind a row, as the row tells clients of version 2.
fn works_after(row: &EventRow) -> Option<bool> {
    match (row.kind, row.form) {
        (EventKind::Live, LineForm::Echo) => {
            Some(str_at(&row.line, &["params", "update", "state"])? != "idle")
        }
        (EventKind::Notice, form) if form != LineForm::First => turn_runs_after(row),
        _ => None,
    }
}

/// Returns whether the session works at a position, as clients of version 2 know.
fn works_at(journal: &Journal, seq: u64) -> bool {
    journal.rows.iter().take(seq as usize).rev().find_map(works_after).unwrap_or(false)
}

/// Returns whether an agent of version 2 has spoken in the session.
fn has_originals(journal: &Journal) -> bool {
    journal.rows.iter().any(|row| row.form == LineForm::Echo)
}

impl Client {
    pub(super) fn is_second(&self) -> bool {
        self.view.version == Version::V2
    }

    /// Notes a request: the client may follow its session again.
    pub(super) fn note_request(&mut self, params: &Value, asked: &Asked) {
        let of = [&params["sessionId"], &params["session"], &params["ref"]["session"]];
        let Some(session) = of.iter().find_map(|id| id.as_str()) else { return };
        // A request that is open may be sent again behind this one.
        let mut open = self.open.values().flatten().filter_map(named);
        let comes_back = self.ride.is_some() && open.any(|of| of == session);
        let lines = self.lines.entry(session.to_owned()).or_default();
        lines.is_left = matches!(asked, Asked::Leave { .. }) && !comes_back;
    }

    /// The connection is lost: nothing but the states counts for the next one.
    pub(super) fn note_cut_off(&mut self) {
        let named: Vec<_> = self.open.values().flatten().filter_map(named).collect();
        for (session, lines) in &mut self.lines {
            (lines.last, lines.complete) = (None, None);
            // A client with an open prompt follows its session in any case, and another request may
            // be sent again behind the one to leave.
            lines.is_left &= !named.contains(&session);
        }
    }

    /// Checks a line about a session: states, the end of a replay, and lines without a row.
    pub(super) fn note_line(
        &mut self,
        line: &Value,
        bytes: &Bytes,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let Some(session) = line["params"]["sessionId"].as_str() else { return Ok(()) };
        let is_ours = line["method"].as_str().is_some_and(|method| !method.starts_with("_acpd/"));
        if !is_ours || self.is_unsure(session) || store.reused.contains(session) {
            return Ok(());
        }
        let key = store.public.get(session);
        let journal = key.and_then(|key| store.journals.get(key));
        let opens = self.open.values().flatten().find_map(|asked| match asked {
            Asked::Open { session: of, load } if of == session => Some(*load),
            _ => None,
        });
        let is_leaving = self.is_leaving(session);
        let (place, view) = (self.places.get(session).copied(), self.view);
        let has_numbers = view.numbers != Numbers::None;
        let lines = self.lines.entry(session.to_owned()).or_default();
        if lines.is_left && !is_leaving {
            return Err(format!("{session}: {line} behind the answer of its close"));
        }
        let update = &line["params"]["update"];
        let Some(kind) = update["sessionUpdate"].as_str() else { return Ok(()) };
        let is_row = !line["params"]["_meta"]["_acpd"]["seq"].is_null();
        if has_numbers && !is_row && !WITHOUT_ROW.contains(&kind) {
            return Err(format!("{session}: {line} is in no journal"));
        }
        if lines.complete.is_some() && (kind != "state_update" || is_row) {
            return Err(format!("{session}: {line} between the end of a replay and the answer"));
        }
        match kind {
            "replay_complete" => {
                truth.hit("replay complete");
                if opens != Some(true) {
                    return Err(format!("{session}: the end of a replay, and no replay is open"));
                }
                lines.complete = Some(0);
            }
            "state_update" => {
                let state = update["state"].as_str().unwrap_or_default();
                truth.hit(match state {
                    "idle" => "state idle",
                    "running" => "state running",
                    "requires_action" => "state requires action",
                    _ => return Err(format!("{session}: strange state: {line}")),
                });
                let is_end = !update["stopReason"].is_null();
                let is_close = is_leaving && is_end && update["stopReason"] == "cancelled";
                if is_close && !is_row {
                    truth.hit("turn cancelled by a close");
                } else if has_numbers && !is_row {
                    if is_end {
                        return Err(format!("{session}: {line} for no turn"));
                    }
                    if let (Some(Place::At(seen)), Some(journal)) = (place, journal)
                        && works_at(journal, seen) == (state == "idle")
                    {
                        return Err(format!("{session}: {line} at {seen}"));
                    }
                } else if is_end && !has_numbers {
                    let is_it = |row: &EventRow| {
                        works_after(row) == Some(false)
                            && render(row, None, session, &view).as_ref() == Some(bytes)
                    };
                    if !journal.is_some_and(|journal| journal.rows.iter().any(is_it)) {
                        return Err(format!("{session}: {line} for no turn"));
                    }
                }
                if let Some(states) = &mut lines.complete {
                    *states += 1;
                }
                // A client that is behind may leave before it has read that the turn started.
                let comes_again = opens.is_some()
                    || is_close && !is_row
                    || lines.last.as_ref().is_some_and(|(kind, _)| kind == "config_option_update");
                // Agents may say the same again.
                let is_placed = is_row && has_numbers || journal.is_some_and(has_originals);
                if lines.state.as_deref() == Some(state) && !comes_again && !is_placed {
                    return Err(format!("{session}: {line} again"));
                }
                lines.state = Some(state.to_owned());
            }
            "config_option_update" => {
                truth.hit("options told as a whole");
                has_all_options(&update["configOptions"])?;
            }
            _ => {}
        }
        lines.last = Some((kind.to_owned(), is_row));
        Ok(())
    }

    pub(super) fn note_answered(
        &mut self,
        asked: &Asked,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        match asked {
            Asked::Open { session, load } => {
                self.note_opened((session, *load), line, store, truth)?;
            }
            Asked::Leave { session } if !line["error"].is_null() => {
                self.lines.entry(session.clone()).or_default().is_left = false;
            }
            Asked::Leave { session } => {
                truth.hit("session left in version 2");
                self.lines.entry(session.clone()).or_default().state = None;
            }
            // The next lines may be old ones.
            Asked::Attach { session, .. } => {
                self.lines.entry(session.clone()).or_default().state = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the answer to `session/resume` comes behind the end of the replay, if it wants
    /// one, and behind the state.
    fn note_opened(
        &mut self,
        (session, load): (&str, bool),
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let is_unsure = self.is_unsure(session) || store.reused.contains(session);
        let lines = self.lines.entry(session.to_owned()).or_default();
        let complete = lines.complete.take();
        if is_unsure {
            return Ok(());
        }
        if !line["error"].is_null() {
            return match complete {
                Some(_) => Err(format!("{session}: a replay for {line}")),
                None => Ok(()),
            };
        }
        has_all_options(&line["result"]["configOptions"])?;
        let is_told = lines.last.as_ref().is_some_and(|(kind, row)| kind == "state_update" && !row);
        match (load, complete) {
            (true, Some(1)) => truth.hit("session resumed with a replay"),
            (false, None) if is_told => truth.hit("session resumed without a replay"),
            _ => return Err(format!("{session}: states {complete:?} in a replay before {line}")),
        }
        Ok(())
    }

    /// Checks the answer to a prompt: the id of its message, which the client has seen.
    pub(super) fn prompt_inserted(
        &self,
        session: &str,
        text: &str,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let key = store.public.get(session).filter(|key| store.has(**key));
        let journal = key.and_then(|key| store.journals.get(key));
        let Some(id) = line["result"]["messageId"].as_str() else {
            if line["error"].is_null() {
                return Err(format!("{text} was answered without the id of its message: {line}"));
            }
            truth.hit("prompt refused in version 2");
            if !truth.shared.contains(text) {
                if journal.is_some_and(|journal| journal.is_said(text)) {
                    return Err(format!("{text} is in the journal, and was answered with {line}"));
                }
                // An agent of version 2 may have it all the same, and could not say so.
                if journal.is_some_and(|journal| !journal.has(text)) {
                    truth.given_back.insert(text.to_owned());
                }
            }
            return Ok(());
        };
        truth.hit("prompt inserted");
        if let Some(known) = truth.inserted.insert(text.to_owned(), id.to_owned()) {
            truth.hit("prompt inserted before");
            if known != id {
                return Err(format!("{text} was {known}, and is {id}"));
            }
        }
        let Some(journal) = journal.filter(|_| !store.reused.contains(session)) else {
            return Ok(());
        };
        let number = if id == "l" {
            // It says so, and never shows it.
            0
        } else if id.starts_with("u-") {
            truth.hit("prompt inserted under the agent's id");
            let is_it = |row: &&EventRow| {
                str_at(&row.line, &["params", "update", "messageId"]).as_deref() == Some(id)
            };
            let row = journal.rows.iter().find(is_it).filter(|_| id == format!("u-{text}"));
            row.ok_or_else(|| format!("{text} is not the message {id}"))?.seq
        } else {
            let number = id.strip_prefix("acpd-").and_then(|number| number.parse().ok());
            let number: u64 = number.ok_or_else(|| format!("{text} has the strange id {id}"))?;
            let is_it = |row: &&EventRow| {
                let kind = str_at(&row.line, &["params", "update", "sessionUpdate"]);
                kind.as_deref() == Some("user_message_chunk")
                    && row.entity == Some(number)
                    && text_of(row).as_deref() == Some(text)
            };
            if !journal.rows.get(number as usize - 1).as_ref().is_some_and(is_it) {
                return Err(format!("{text} is not the message {id}"));
            }
            number
        };
        match self.places.get(session) {
            Some(Place::At(seen))
                if self.view.numbers != Numbers::None
                    && *seen < number
                    && !self.is_unsure(session)
                    && !self.is_leaving(session) =>
            {
                Err(format!("{text} was answered at {seen}, before its line {number}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the first session of which the client was told another state. `states`: the states
    /// that a session may have; none if nothing is known of it.
    pub(super) fn wrong_state(
        &self,
        states: impl Fn(&str) -> &'static [&'static str],
    ) -> Option<String> {
        let told = self.lines.iter().filter(|(session, lines)| {
            let known = lines.state.as_deref().filter(|_| !lines.is_left);
            let may_be = states(session);
            known.is_some_and(|state| !may_be.is_empty() && !may_be.contains(&state))
        });
        let mut told = told.filter(|(session, _)| !self.is_unsure(session));
        let (session, lines) = told.next()?;
        Some(format!("{session} is {:?}, and not {:?}", states(session), lines.state))
    }

    /// Returns whether a row about this client's own action is shown only to others.
    pub(super) fn is_hidden_as_own(&self, row: &EventRow) -> bool {
        let state = match row.kind {
            EventKind::State(StateKey::Mode | StateKey::Options) => self.set_values > 0,
            EventKind::State(StateKey::Info) => self.set_titles > 0,
            _ => false,
        };
        !self.is_second() && (state || self.prompts.contains(&text_of(row).unwrap_or_default()))
    }
}

/// Checks that a question names its call as the lines of its turn do.
pub(super) fn check_subject(params: &Value, tool: &str, store: &Store) -> Result<(), String> {
    let session = params["sessionId"].as_str().unwrap_or_default();
    let key = store.public.get(session).filter(|_| !store.reused.contains(session));
    let Some(journal) = key.and_then(|key| store.journals.get(key)) else { return Ok(()) };
    let (call, _) = tool.rsplit_once('/').unwrap_or_default();
    let prompt = call.split('-').next();
    let rows = journal.rows.iter().rev();
    let mut rows = rows.skip_while(|row| text_of(row).as_deref() != prompt);
    let started = rows.find(|row| turn_runs_after(row) == Some(true));
    let line = started.and_then(|row| serde_json::from_slice::<Value>(&row.line).ok());
    let turn = line.map_or(Value::Null, |mut line| line["params"]["turn"].take());
    let id = &params["subject"]["toolCall"]["toolCallId"];
    if *id == format!("{call}~{turn}") || *id == call && has_originals(journal) {
        return Ok(());
    }
    Err(format!("{session}: {id} is asked about, which is {call} of turn {turn}"))
}

/// Checks that a list of options has the modes, and the options of the agent.
fn has_all_options(options: &Value) -> Result<(), String> {
    let ids = options.as_array().into_iter().flatten().map(|option| &option["configId"]);
    let mut ids: Vec<_> = ids.filter_map(Value::as_str).collect();
    ids.sort_unstable();
    // An agent may restore a session without saying anything.
    if ids.is_empty() || ids == ["mode", "model"] || ids == ["how", "model"] {
        return Ok(());
    }
    Err(format!("these are not all options: {options}"))
}

pub(super) fn prompted(asked: &Asked) -> Option<&String> {
    match asked {
        Asked::Prompt { session, .. } | Asked::Steer { session, .. } => Some(session),
        _ => None,
    }
}

/// acpd's own part of the answer to `initialize`.
pub(super) fn own_part(line: &Value) -> &Value {
    let result = &line["result"];
    let parts = ["agentCapabilities", "capabilities"].map(|name| &result[name]["_meta"]["_acpd"]);
    parts.into_iter().find(|part| !part.is_null()).unwrap_or(&Value::Null)
}

/// The params of `initialize`.
pub(super) fn introduction(is_second: bool, own: &Value) -> Value {
    if is_second {
        return json!({"protocolVersion":2,"_meta":{"_acpd":own},"capabilities":{},
            "info":{"name":"second","version":"1"}});
    }
    json!({"protocolVersion":1,"_meta":{"_acpd":own},"clientCapabilities":{
        "plan":{},"subagents":{},
        "session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}}}})
}
