//! Model clients: what they ask, and what they check in what they get.

use std::collections::{BTreeMap, VecDeque};

use acpd_core::ids::SessionKey;
use acpd_core::record::{EventKind, EventRow};
use acpd_core::view::render;
use acpd_core::{Effect, View};
use bytes::Bytes;
use serde_json::{Value, json};

use super::rng::Rng;
use super::store::Store;
use super::truth::Truth;

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) agent: String,
    pub(super) view: View,
    /// Requests that are not answered yet, by the JSON text of their id.
    pub(super) open: BTreeMap<String, Vec<Asked>>,
    next: i64,
    /// What it has seen of each session.
    pub(super) places: BTreeMap<String, Place>,
    /// Questions that wait for it: id and tool call.
    pub(super) questions: Vec<(Value, String)>,
    /// What the daemon has yet to do for it, in order.
    pub(super) ops: VecDeque<Effect>,
    pub(super) lagged: bool,
    pub(super) slow: bool,
    /// Lines it sent that nobody can match to a request.
    pub(super) malformed: u32,
    set_modes: u32,
    prompts: Vec<String>,
}

/// A request.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// The answer does not matter.
    Plain,
    /// A second request under an id that is in use.
    Duplicate,
    Prompt {
        session: String,
        text: String,
    },
    /// `session/load` or `session/resume`, or `session/new` with `reuse`.
    Open {
        session: String,
    },
    Attach {
        session: String,
        after: Option<u64>,
    },
}

/// How far a client has seen a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An attach is on its way: nothing can be said.
    Unknown,
    /// Attached; the position comes with the notice that it has caught up.
    Opened,
    /// Everything up to here.
    At(u64),
}

impl Client {
    pub(super) fn new(agent: &str, rng: &mut Rng) -> Client {
        let view = View {
            seq: rng.permille(800),
            notices: rng.permille(800),
            boolean_options: true,
            notice_updates: true,
            compaction: true,
            max_line: 0,
        };
        Client {
            agent: agent.to_owned(),
            view,
            open: BTreeMap::new(),
            next: 0,
            places: BTreeMap::new(),
            questions: Vec::new(),
            ops: VecDeque::new(),
            lagged: false,
            slow: rng.permille(200),
            malformed: 0,
            set_modes: 0,
            prompts: Vec::new(),
        }
    }

    /// A request with a new id.
    pub(super) fn ask(
        &mut self,
        method: &str,
        params: Value,
        asked: Asked,
        rng: &mut Rng,
    ) -> Bytes {
        let n = self.next;
        self.next += 1;
        let id = match rng.below(4) {
            0 => json!(format!("r{n}")),
            1 => json!(-n - 1),
            _ => json!(n),
        };
        if method == "session/set_mode" {
            self.set_modes += 1;
        }
        match &asked {
            Asked::Prompt { text, .. } => self.prompts.push(text.clone()),
            Asked::Open { session } | Asked::Attach { session, .. } => {
                self.places.insert(session.clone(), Place::Unknown);
            }
            Asked::Plain | Asked::Duplicate => {}
        }
        self.open.entry(id.to_string()).or_default().push(asked);
        line(&json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}))
    }

    pub(super) fn initialize(&mut self, rng: &mut Rng) -> Bytes {
        let meta =
            json!({"_acpd":{"agent":self.agent,"notices":self.view.notices,"seq":self.view.seq}});
        let params = json!({"protocolVersion":1,"_meta":meta,"clientCapabilities":{
            "session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}}}});
        self.ask("initialize", params, Asked::Plain, rng)
    }

    /// Whether an attach to this session is on its way.
    pub(super) fn is_opening(&self, wanted: &str) -> bool {
        self.open.values().flatten().any(|asked| match asked {
            Asked::Open { session } | Asked::Attach { session, .. } => session == wanted,
            _ => false,
        })
    }

    /// The daemon sent a line.
    pub(super) fn receive(
        &mut self,
        bytes: &Bytes,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let line: Value =
            serde_json::from_slice(bytes).map_err(|e| format!("client got no JSON: {e}"))?;
        match (line["method"].as_str(), line.get("id")) {
            (None, Some(id)) => self.answered(id, &line, store, truth),
            (Some("session/request_permission"), Some(id)) => {
                if !id.as_u64().is_some_and(|id| truth.asked.insert(id)) {
                    return Err(format!("id {id} was issued before"));
                }
                let tool = line["params"]["toolCall"]["toolCallId"].as_str().unwrap_or_default();
                self.questions.push((id.clone(), tool.to_owned()));
                truth.hit("permission offered");
                Ok(())
            }
            (Some("$/cancel_request"), None) => {
                let id = &line["params"]["requestId"];
                if !truth.asked.contains(&id.as_u64().unwrap_or_default()) {
                    return Err(format!("a question was withdrawn that was never asked: {id}"));
                }
                truth.hit("permission withdrawn");
                Ok(())
            }
            (Some(acpd_api::method::CAUGHT_UP), None) => self.caught_up(&line, store),
            (Some(_), None) => self.told(&line, bytes, store),
            _ => Err(format!("client got {line}")),
        }
    }

    fn answered(
        &mut self,
        id: &Value,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        if id.is_null() && self.malformed > 0 {
            self.malformed -= 1;
            return Ok(());
        }
        let key = id.to_string();
        let Some(asked) = self.open.get_mut(&key) else {
            return Err(format!("an answer to nothing, or a second one: {line}"));
        };
        let refused = line["error"]["code"] == -32600 || !line["result"]["daemon"].is_null();
        let duplicate = asked.iter().position(|a| matches!(a, Asked::Duplicate));
        let at = duplicate.filter(|_| refused).unwrap_or(0);
        let asked_for = asked.remove(at);
        if asked.is_empty() {
            self.open.remove(&key);
        }
        let failed = !line["error"].is_null();
        match asked_for {
            Asked::Plain | Asked::Duplicate => {}
            Asked::Open { session } => {
                if failed {
                    self.places.remove(&session);
                } else {
                    self.places.insert(session, Place::Opened);
                }
            }
            Asked::Attach { session, after } => {
                if failed {
                    self.places.remove(&session);
                } else {
                    let head = line["result"]["session"]["seq"].as_u64().unwrap_or_default();
                    self.places.insert(session, Place::At(after.unwrap_or(head).min(head)));
                }
            }
            Asked::Prompt { session, text } => {
                self.prompt_ended(&session, &text, line, store, truth)?;
            }
        }
        Ok(())
    }

    /// The answer to a prompt never comes before what the agent said.
    fn prompt_ended(
        &mut self,
        session: &str,
        text: &str,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        match line["result"]["stopReason"].as_str() {
            Some("end_turn") => {
                truth.hit("prompt answered");
                if !truth.ended.contains(text) {
                    return Err(format!("{text} was answered by nobody"));
                }
            }
            Some("cancelled") => truth.hit("prompt cancelled"),
            _ => truth.hit("prompt failed"),
        }
        let key = store.public.get(session);
        // Of a deleted session there is nothing left to read.
        let key = key.filter(|key| store.snapshot.sessions.contains_key(key));
        let Some(key) = key else { return Ok(()) };
        let end = store.journals.get(key).map_or(0, |journal| journal.end_of(text));
        match self.place(session, store) {
            Some(Place::At(seen)) if self.view.seq && seen < end => {
                Err(format!("{text} was answered at {seen}, before its line {end}"))
            }
            _ => Ok(()),
        }
    }

    /// How far it has seen a session, if that can be told.
    fn place(&self, session: &str, store: &Store) -> Option<Place> {
        let place = self.places.get(session).copied();
        place.filter(|_| !store.reused.contains(session))
    }

    fn caught_up(&mut self, line: &Value, store: &Store) -> Result<(), String> {
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        let seq = line["params"]["seq"].as_u64().unwrap_or_default();
        match self.place(session, store) {
            Some(Place::Opened) => {
                self.places.insert(session.to_owned(), Place::At(seq));
            }
            Some(Place::At(last)) if self.view.seq => {
                if last > seq {
                    return Err(format!("{session}: caught up at {seq} after {last}"));
                }
                self.nothing_missing(session, last, seq + 1, store)?;
                self.places.insert(session.to_owned(), Place::At(seq));
            }
            _ => {}
        }
        Ok(())
    }

    /// A line of a journal, or a notice that is in none.
    fn told(&mut self, line: &Value, bytes: &Bytes, store: &Store) -> Result<(), String> {
        let Some(seq) = line["params"]["_meta"]["_acpd"]["seq"].as_u64() else { return Ok(()) };
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        if store.reused.contains(session) {
            return Ok(());
        }
        let row = committed(session, seq, store)?;
        let shown = render(&row.line, row.kind, seq, &self.view);
        if shown.as_ref() != Some(bytes) {
            return Err(format!("{session} {seq}: shown {line}, which is not in the journal"));
        }
        match self.places.get(session).copied() {
            Some(Place::At(last)) => {
                if seq <= last {
                    return Err(format!("{session}: line {seq} after {last}"));
                }
                self.nothing_missing(session, last, seq, store)?;
                self.places.insert(session.to_owned(), Place::At(seq));
            }
            Some(Place::Unknown | Place::Opened) => {}
            None => {
                self.places.insert(session.to_owned(), Place::At(seq));
            }
        }
        Ok(())
    }

    /// Between two lines that it has seen there is nothing that it should have seen.
    fn nothing_missing(
        &self,
        session: &str,
        after: u64,
        before: u64,
        store: &Store,
    ) -> Result<(), String> {
        for seq in after + 1..before {
            let row = committed(session, seq, store)?;
            let hidden = render(&row.line, row.kind, seq, &self.view).is_none();
            if !hidden && !self.is_its_own(row) {
                let line = String::from_utf8_lossy(&row.line);
                return Err(format!("{session}: line {seq} is missing after {after}: {line}"));
            }
        }
        Ok(())
    }

    /// Whether a row tells what this client itself did.
    fn is_its_own(&self, row: &EventRow) -> bool {
        let line: Value = serde_json::from_slice(&row.line).unwrap_or_default();
        let text = line["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        let mode = matches!(row.kind, EventKind::State(acp_wire::StateKey::Mode));
        self.prompts.iter().any(|prompt| prompt == text) || (mode && self.set_modes > 0)
    }
}

/// A line of a journal; it is an error if it is not committed.
fn committed<'s>(session: &str, seq: u64, store: &'s Store) -> Result<&'s EventRow, String> {
    let key: Option<&SessionKey> = store.public.get(session);
    let journal = key.and_then(|key| store.journals.get(key));
    journal
        .and_then(|journal| journal.rows.get(seq as usize - 1))
        .ok_or_else(|| format!("{session} {seq}: shown before it was committed"))
}

/// A line of a client.
pub(super) fn line(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
