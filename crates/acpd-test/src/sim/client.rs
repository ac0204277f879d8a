//! Model clients: their requests, and the checks of everything that they get.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acp_wire::Version;
use acp_wire::acp::ClientCapabilities;
use acpd_core::ids::SessionKey;
use acpd_core::record::{EventKind, EventRow};
use acpd_core::views::render;
use acpd_core::{Numbers, ToClient, View};
use bytes::Bytes;
use serde_json::{Value, json};

use super::client2::{
    SessionLines, check_subject, introduction, is_state, own_part, prompted, request,
};
use super::folded::{first_of_call, first_of_message};
use super::ride::{HELLO, Ride, Word, with_number};
use super::store::Store;
use super::truth::{Truth, wire_id};
use crate::rng::Rng;

/// One connection; for a client with a token all its connections, one after another.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) ride: Option<Ride>,
    left: BTreeSet<String>,
    /// Sessions that the client follows because of its prompts, without having opened them: until it
    /// has caught up, their lines could be taken for a replay.
    followed: BTreeSet<String>,
    /// Sessions that the client may have opened, for this connection: a replay may come at any
    /// time, also behind other lines.
    unsure: BTreeSet<String>,
    /// Sessions that were in `unsure` when the last connection was lost. The client may not have
    /// named them when it resumed: an answer that was kept for it comes without their lines.
    unnamed: BTreeSet<String>,
    /// A `session/new` may have succeeded: for this connection the new session may be any.
    may_have_made: bool,
    pub(super) agent: String,
    pub(super) view: View,
    /// Open requests, by the JSON text of their id.
    pub(super) open: BTreeMap<String, Vec<Asked>>,
    next: i64,
    /// Seen lines of each session.
    pub(super) places: BTreeMap<String, Place>,
    /// Open questions: id and tool call.
    pub(super) questions: Vec<(Value, String)>,
    asked: BTreeSet<String>,
    /// Pending work of the daemon for this client, in order.
    pub(super) waiting: VecDeque<ToClient>,
    pub(super) lagged: bool,
    pub(super) slow: bool,
    /// Sent lines that match no request.
    pub(super) malformed: u32,
    pub(super) set_values: u32,
    pub(super) set_titles: u32,
    pub(super) prompts: Vec<String>,
    /// The last line of each session, over all connections.
    shown: BTreeMap<String, u64>,
    /// `initialize` has failed.
    pub(super) is_turned_away: bool,
    /// Of a client of version 2.
    pub(super) lines: BTreeMap<String, SessionLines>,
}

#[derive(Debug, Clone)]
pub(super) enum Asked {
    Plain,
    Login,
    Initialize,
    /// A second request under an id that is in use.
    Duplicate,
    Prompt {
        session: String,
        text: String,
    },
    Mode {
        session: String,
    },
    /// A message into the running turn; the answer shows in which form.
    Steer {
        session: String,
        text: String,
    },
    Open {
        session: String,
        load: bool,
    },
    New,
    Leave {
        session: String,
    },
    Attach {
        session: String,
        after: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An attach is open: no check is possible. Never for a client with a token.
    Unknown,
    /// Attached; the position comes with the next line, or with the notice that the client has
    /// caught up.
    Opened { last: u64 },
    /// A load replays the session: lines seen before, the last number of the replay, and the last
    /// one that was not a state.
    Loading { before: u64, seen: Option<u64>, told: u64 },
    /// Everything up to this line was seen.
    At(u64),
}

fn leaves(asked: &Asked) -> Option<&String> {
    match asked {
        Asked::Leave { session } => Some(session),
        _ => None,
    }
}

impl Place {
    /// The last line that was certainly seen.
    fn cursor(self) -> Option<u64> {
        match self {
            Place::At(seq) => Some(seq),
            Place::Opened { last } => Some(last),
            Place::Unknown | Place::Loading { .. } => None,
        }
    }
}

impl Client {
    pub(super) fn new(agent: &str, rng: &mut Rng) -> Client {
        let view = View {
            numbers: if rng.permille(800) { Numbers::InMeta } else { Numbers::None },
            notices: rng.permille(800),
            version: if rng.below(3) == 0 { Version::V2 } else { Version::V1 },
            originals: rng.permille(300),
            capabilities: ClientCapabilities::all_shown(),
            ..View::default()
        };
        let slow = rng.permille(200);
        Client { agent: agent.to_owned(), view, slow, ..Client::default() }
    }

    /// A request with a new id. Returns the line if it can be sent now.
    pub(super) fn ask(
        &mut self,
        method: &str,
        params: Value,
        asked: Asked,
        rng: &mut Rng,
    ) -> Option<Bytes> {
        let n = self.next;
        self.next += 1;
        let id = match rng.below(4) {
            0 => json!(format!("r{n}")),
            1 => json!(-n - 1),
            _ => json!(n),
        };
        match method {
            "session/set_mode" | "session/set_config_option" => self.set_values += 1,
            acpd_api::method::SESSION_TITLE => self.set_titles += 1,
            _ => {}
        }
        match &asked {
            Asked::Prompt { text, .. } | Asked::Steer { text, .. } => {
                self.prompts.push(text.clone());
            }
            Asked::Open { session, load: true } if self.ride.is_some() => {
                let before = match self.places.get(session) {
                    Some(Place::Loading { before, .. }) => *before,
                    place => place.and_then(|place| place.cursor()).unwrap_or(0),
                };
                self.places.insert(session.clone(), Place::Loading { before, seen: None, told: 0 });
            }
            Asked::Open { session, .. } | Asked::Attach { session, .. } if self.ride.is_none() => {
                self.places.insert(session.clone(), Place::Unknown);
            }
            Asked::Leave { session } => {
                self.left.insert(session.clone());
                if self.ride.is_none() {
                    self.places.insert(session.clone(), Place::Unknown);
                }
            }
            _ => {}
        }
        self.note_request(&params, &asked);
        self.open.entry(id.to_string()).or_default().push(asked);
        let (method, params) =
            if self.is_second() { request(method, params) } else { (method, params) };
        let line = line(&json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}));
        self.say(line)
    }

    /// A line that is no request. Returns it if it can be sent now.
    pub(super) fn say(&mut self, line: Bytes) -> Option<Bytes> {
        let Some(ride) = &mut self.ride else { return Some(line) };
        ride.send(line);
        None
    }

    pub(super) fn initialize(&mut self, rng: &mut Rng) -> Bytes {
        let own = json!({"agent":self.agent,"notices":self.view.notices,
            "originals":self.view.originals,"seq":self.has_numbers()});
        let params = introduction(self.is_second(), &own);
        let Some(ride) = &mut self.ride else {
            return self.ask("initialize", params, Asked::Initialize, rng).unwrap_or_default();
        };
        // Lines come with numbers in any case.
        self.view.numbers = Numbers::InMeta;
        if ride.has_begun {
            // The memory may know more of a session that this model has lost track of.
            for (session, seq) in ride.back() {
                self.places.entry(session).or_insert(Place::At(seq));
            }
        } else {
            ride.send(line(
                &json!({"jsonrpc":"2.0","id":HELLO,"method":"initialize","params":params}),
            ));
        }
        ride.wire.pop_front().unwrap_or_default()
    }

    /// The connection is lost with all lines under way. Returns whether the client resumes.
    pub(super) fn cut_off(&mut self, now: u64) -> bool {
        self.waiting.clear();
        self.unnamed = std::mem::take(&mut self.unsure);
        // The memory, but not this model, knows the position in these sessions, and reports it when
        // the client resumes.
        self.places.retain(|session, _| !self.unnamed.contains(session));
        self.may_have_made = false;
        self.lagged = false;
        for place in self.places.values_mut() {
            if let Place::Loading { before, .. } = place {
                *before = 0;
            }
        }
        // A session that the client is leaving is neither named nor followed again.
        let leaving: BTreeSet<&String> = self.open.values().flatten().filter_map(leaves).collect();
        let loads = |place: &Place| matches!(place, Place::Loading { .. });
        self.places.retain(|session, place| loads(place) || !leaving.contains(session));
        self.note_cut_off();
        let prompted = self.open.values().flatten().filter_map(prompted).cloned();
        self.followed = prompted.filter(|session| !self.places.contains_key(session)).collect();
        self.ride.as_mut().is_some_and(|ride| ride.lost(now))
    }

    fn has_numbers(&self) -> bool {
        self.view.numbers != Numbers::None
    }

    /// Returns whether an attach to this session is open, or may be.
    pub(super) fn is_opening(&self, wanted: &str) -> bool {
        self.unsure.contains(wanted)
            || self.open.values().flatten().any(|asked| match asked {
                Asked::Open { session, .. } | Asked::Attach { session, .. } => session == wanted,
                _ => false,
            })
    }

    /// Returns whether the outcome of a request to open or leave a session is unknown.
    pub(super) fn is_unsure(&self, wanted: &str) -> bool {
        self.unsure.contains(wanted) || self.unnamed.contains(wanted)
    }

    /// Returns whether the client is leaving a session.
    pub(super) fn is_leaving(&self, wanted: &str) -> bool {
        self.open.values().flatten().filter_map(leaves).any(|session| session == wanted)
    }

    /// Returns whether the client may work in a session. A resuming client must have opened it,
    /// because otherwise its seen lines would be unknown.
    pub(super) fn may_work(&self, wanted: &str) -> bool {
        self.ride.is_none() || matches!(self.places.get(wanted), Some(Place::At(_)))
    }

    /// Returns whether a replay could be distinguished from other lines of a session.
    pub(super) fn may_load(&self, wanted: &str) -> bool {
        let named = |asked: &Asked| match asked {
            Asked::Prompt { session, .. }
            | Asked::Steer { session, .. }
            | Asked::Mode { session }
            | Asked::Leave { session } => session == wanted,
            // The session may be this one.
            Asked::New => true,
            _ => false,
        };
        let is_clear = !self.may_have_made && !self.open.values().flatten().any(named);
        let stands = match self.places.get(wanted) {
            Some(Place::At(seen)) => *seen > 0,
            place => place.is_none(),
        };
        self.ride.is_none() || (is_clear && stands && !self.followed.contains(wanted))
    }

    pub(super) fn receive(
        &mut self,
        bytes: &Bytes,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let numbered = with_number(bytes);
        if numbered.is_some() {
            truth.hit("line with its position");
        }
        let (bytes, from_daemon) = (numbered.as_ref().unwrap_or(bytes), bytes);
        let line: Value =
            serde_json::from_slice(bytes).map_err(|e| format!("client got no JSON: {e}"))?;
        if let Some(ride) = &mut self.ride {
            match ride.receive(from_daemon, &line, store)? {
                Word::ForMemory => return self.is_open_again(&line),
                Word::Kept if !self.may_be_kept(&line, store) => {
                    return Err(format!("the memory keeps {line} from its user"));
                }
                Word::Kept | Word::Shown => self.remember_shown(&line),
            }
        }
        if self.is_second() {
            self.note_line(&line, bytes, store, truth)?;
        }
        match (line["method"].as_str(), line.get("id")) {
            (None, Some(id)) => self.answered(id, &line, store, truth),
            (Some("session/request_permission"), Some(id)) => {
                // An id stands for its shown content, for all clients and daemons.
                let params = &line["params"];
                let titled = if self.is_second() { params } else { &params["toolCall"] };
                let tool = titled["title"].as_str().unwrap_or_default();
                let shown = &line["params"]["_meta"]["_acpd"]["shown"]["title"];
                if !shown.is_null() && shown != tool {
                    return Err(format!("{shown} is shown of {tool}"));
                }
                if self.is_second() {
                    check_subject(params, tool, store)?;
                }
                let text = wire_id(id)?;
                let known = truth.asked.entry(text.clone()).or_insert_with(|| tool.to_owned());
                // The memory of a client with a token knows its questions.
                let is_new = self.ride.is_some() || self.asked.insert(text);
                if *known != tool || !is_new {
                    return Err(format!("id {id} was issued before"));
                }
                self.questions.push((id.clone(), tool.to_owned()));
                truth.hit("permission offered");
                Ok(())
            }
            (Some("$/cancel_request"), None) => {
                let id = &line["params"]["requestId"];
                if !truth.asked.contains_key(&id.to_string()) {
                    return Err(format!("a question was withdrawn that was never asked: {id}"));
                }
                truth.hit("permission withdrawn");
                Ok(())
            }
            (Some(acpd_api::method::CAUGHT_UP), None) => self.caught_up(&line, store),
            (Some(_), None) => self.told(&line, bytes, store, truth),
            _ => Err(format!("client got {line}")),
        }
    }

    /// Notes the shown position of a session, from a line or from a notice that the client has
    /// caught up.
    fn remember_shown(&mut self, line: &Value) {
        let params = &line["params"];
        let seq = params["_meta"]["_acpd"]["seq"].as_u64().or(params["seq"].as_u64());
        if let (Some(session), Some(seq)) = (params["sessionId"].as_str(), seq) {
            let shown = self.shown.entry(session.to_owned()).or_default();
            *shown = seq.max(*shown);
        }
    }

    /// Checks that the daemon requests only open requests again.
    fn is_open_again(&self, line: &Value) -> Result<(), String> {
        let again = &own_part(line)["again"];
        let mut again = again.as_array().into_iter().flatten();
        match again.find(|id| !self.open.contains_key(&id.to_string())) {
            Some(id) => Err(format!("{id} is to be sent again, and is not open")),
            None => Ok(()),
        }
    }

    /// Returns whether the memory may keep a line from the client: one that was shown before, or is
    /// of no use.
    fn may_be_kept(&self, line: &Value, store: &Store) -> bool {
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        match (line["method"].as_str(), line["params"]["_meta"]["_acpd"]["seq"].as_u64()) {
            (None, _) => line["id"].is_null(),
            (Some(method), None) => method.starts_with("_acpd/"),
            (Some(_), Some(seq)) => {
                store.reused.contains(session) || self.shown.get(session) >= Some(&seq)
            }
        }
    }

    fn answered(
        &mut self,
        id: &Value,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let says =
            |text: &str| line["error"]["message"].as_str().is_some_and(|why| why.contains(text));
        if id.is_null() && says("does not count") {
            truth.hit("answer of a client that does not count");
            return Ok(());
        }
        if id.is_null() && self.malformed > 0 {
            // A line that was sent again is answered again.
            self.malformed -= u32::from(self.ride.is_none());
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
        let rides = self.ride.is_some();
        let tells_no_outcome = line["error"]["data"]["_acpd"]["reason"] == "outcome_unknown";
        if tells_no_outcome {
            truth.hit("answer that tells no outcome");
            self.may_have_made |= matches!(asked_for, Asked::New);
            if let Asked::Open { session, .. }
            | Asked::Attach { session, .. }
            | Asked::Leave { session } = &asked_for
            {
                self.places.remove(session);
                self.unsure.insert(session.clone());
            }
        }
        if self.is_second() {
            self.note_answered(&asked_for, line, store, truth)?;
        }
        if rides {
            truth.hit("answer to a client with a token");
        }
        match asked_for {
            // A client without a version could not know what it gets.
            Asked::Initialize => self.is_turned_away = failed && self.is_second(),
            Asked::Plain | Asked::Login | Asked::Duplicate | Asked::Mode { .. } => {}
            Asked::New if rides && !failed => {
                let made = line["result"]["sessionId"].as_str().unwrap_or_default();
                // The session may have been listed, and opened in vain, before this answer.
                if !self.unsure.contains(made) {
                    self.places.entry(made.to_owned()).or_insert(Place::At(0));
                }
            }
            Asked::New => {}
            Asked::Open { session, load: true } if rides => {
                let place = match self.places.get(&session) {
                    Some(Place::Loading { before, seen, .. }) if !failed => {
                        Some(Place::Opened { last: seen.unwrap_or(*before) })
                    }
                    // The client follows the session as before, if it did.
                    Some(Place::Loading { before, .. }) if *before > 0 => Some(Place::At(*before)),
                    _ => None,
                };
                match place {
                    Some(place) => self.places.insert(session, place),
                    None => self.places.remove(&session),
                };
            }
            Asked::Open { .. } if rides => {}
            Asked::Leave { session } if rides => {
                let loads = matches!(self.places.get(&session), Some(Place::Loading { .. }));
                if !failed && !loads {
                    self.places.remove(&session);
                }
            }
            Asked::Leave { .. } => {}
            Asked::Attach { .. } if rides && failed => {}
            Asked::Open { session, .. } => {
                if failed {
                    self.places.remove(&session);
                } else {
                    self.places.insert(session, Place::Opened { last: 0 });
                }
            }
            Asked::Attach { session, after } => {
                if failed {
                    self.places.remove(&session);
                } else {
                    let found = &line["result"]["session"];
                    let id = found["sessionId"].as_str().unwrap_or_default();
                    if id != session {
                        // A prefix of its id, once no session has all of it.
                        let key = store.public.get(&session);
                        let exists = key.is_some_and(|key| store.has(*key));
                        if (exists && !store.reused.contains(&session)) || !id.starts_with(&session)
                        {
                            return Err(format!("attached to {id} instead of {session}"));
                        }
                        truth.hit("attached to another session by the beginning of its id");
                        self.places.remove(&session);
                    }
                    let head = found["seq"].as_u64().unwrap_or_default();
                    self.put(id, Place::At(after.unwrap_or(head).min(head)));
                }
            }
            // The turn may run after this answer, so its lines may come later: also to a client that
            // has left the session, which follows it again then.
            Asked::Prompt { session, .. } | Asked::Steer { session, .. } if tells_no_outcome => {
                if self.is_leaving(&session) || !self.places.contains_key(&session) {
                    self.followed.insert(session);
                }
            }
            Asked::Prompt { session, text } if self.is_second() => {
                self.prompt_inserted(&session, &text, line, store, truth)?;
            }
            Asked::Prompt { session, text } => {
                self.prompt_ended(&session, &text, line, store, truth)?;
            }
            Asked::Steer { session, text } => steered(&session, &text, line, store, truth)?,
        }
        Ok(())
    }

    /// The answer to a prompt never comes before the agent's lines.
    fn prompt_ended(
        &mut self,
        session: &str,
        text: &str,
        line: &Value,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        if truth.inserted.contains_key(text) {
            truth.hit("prompt of clients of both versions");
        }
        match line["result"]["stopReason"].as_str() {
            Some("end_turn") => {
                truth.hit("prompt answered");
                if !truth.ended.contains_key(text) {
                    return Err(format!("{text} was answered by nobody"));
                }
            }
            Some("cancelled") => truth.hit("prompt cancelled"),
            _ => truth.hit("prompt failed"),
        }
        let key = store.public.get(session);
        // A deleted session has nothing left to read.
        let key = key.filter(|key| store.has(**key));
        let Some(key) = key else { return Ok(()) };
        let end =
            store.journals.get(key).map_or(0, |journal| journal.end_of(text, self.view.reads()));
        // Of several requests with one key, some may be refused, or taken back before the turn.
        let metas = [&line["result"]["_meta"], &line["error"]["data"]];
        let is_of_turn = !truth.shared.contains(text)
            || line["result"]["stopReason"] == "end_turn"
            || metas.iter().any(|meta| meta["_acpd"]["turn"].is_u64());
        // After an answer without an outcome the client does not know whether it follows the
        // session.
        let untold = store.reused.contains(session)
            || self.left.contains(session)
            || self.unsure.contains(session)
            || self.unnamed.contains(session);
        match self.place(session, store) {
            None if self.ride.is_some() && !untold && line["error"].is_null() => {
                Err(format!("{text} was answered, and its session was never shown"))
            }
            Some(Place::At(_)) if !is_of_turn => Ok(()),
            // A client that closes a session during its own prompt gets only that answer.
            Some(Place::At(_)) if self.left.contains(session) && line["result"].is_null() => Ok(()),
            // Answers no longer wait for lines of a session that was left.
            Some(Place::At(_)) if self.is_leaving(session) => Ok(()),
            Some(Place::At(seen)) if self.has_numbers() && seen < end => {
                Err(format!("{text} was answered at {seen}, before its line {end}"))
            }
            _ => Ok(()),
        }
    }

    /// The position in a session, if it is certain.
    fn place(&self, session: &str, store: &Store) -> Option<Place> {
        let place = self.places.get(session).copied();
        place.filter(|_| !store.reused.contains(session))
    }

    fn put(&mut self, session: &str, place: Place) {
        self.places.insert(session.to_owned(), place);
    }

    fn caught_up(&mut self, line: &Value, store: &Store) -> Result<(), String> {
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        let seq = line["params"]["seq"].as_u64().unwrap_or_default();
        self.followed.remove(session);
        if self.unsure.contains(session) {
            return Ok(());
        }
        let resumes = |asked: &Asked| matches!(asked, Asked::Open { session: of, load: false } if of == session);
        if self.ride.is_some() && self.open.values().flatten().any(resumes) {
            // The client wants only later lines.
            self.put(session, Place::At(seq));
            return Ok(());
        }
        match self.place(session, store) {
            Some(Place::Opened { .. }) => self.put(session, Place::At(seq)),
            Some(Place::Loading { before, seen, told }) => {
                let place = match seen {
                    Some(last) => Place::Loading { before, seen: Some(last.max(seq)), told },
                    None if before == 0 => Place::Loading { before, seen: Some(seq), told: seq },
                    None => Place::Loading { before: before.max(seq), seen, told },
                };
                self.put(session, place);
            }
            None if self.ride.is_some() => self.put(session, Place::At(seq)),
            Some(Place::At(last)) if self.has_numbers() => {
                if last > seq {
                    return Err(format!("{session}: caught up at {seq} after {last}"));
                }
                self.nothing_missing(session, last, seq + 1, false, store)?;
                self.put(session, Place::At(seq));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a line of a journal, or a notice that is in none.
    fn told(
        &mut self,
        line: &Value,
        bytes: &Bytes,
        store: &Store,
        truth: &mut Truth,
    ) -> Result<(), String> {
        let Some(seq) = line["params"]["_meta"]["_acpd"]["seq"].as_u64() else { return Ok(()) };
        let session = line["params"]["sessionId"].as_str().unwrap_or_default();
        if store.reused.contains(session) {
            return Ok(());
        }
        let row = committed(session, seq, store)?;
        let update = &line["params"]["update"];
        let loaded = match self.places.get(session) {
            Some(Place::Loading { told, .. }) => Some(*told),
            _ => None,
        };
        let is_call = !update["toolCallId"].is_null();
        let shown = render(row, None, session, &self.view);
        // The last update of a call may have all that the earlier ones had.
        let first = if shown.as_ref() == Some(bytes) && !(is_call && loaded.is_some()) {
            seq
        } else if is_call {
            first_of_call(session, loaded.unwrap_or(0)..seq, update, &self.view, store)?
        } else {
            first_of_message(session, seq, (line, bytes), &self.view, store)?
        };
        if self.unsure.contains(session) {
            return Ok(());
        }
        match self.places.get(session).copied() {
            Some(Place::At(last)) => {
                if first <= last || first < seq {
                    return Err(format!("{session}: lines {first} to {seq} after {last}"));
                }
                self.nothing_missing(session, last, seq, false, store)?;
                self.put(session, Place::At(seq));
            }
            Some(Place::Loading { before, seen, told }) => {
                if first < seq {
                    truth.hit(if is_call {
                        "folded call in a load"
                    } else {
                        "folded lines in a load"
                    });
                }
                self.replayed(session, (before, seen, told), (first, seq), store)?;
            }
            Some(Place::Opened { .. }) if self.ride.is_none() => {}
            Some(Place::Unknown) => {}
            Some(Place::Opened { .. }) | None => self.put(session, Place::At(seq)),
        }
        Ok(())
    }

    /// Checks a line while a load is open: an older line, or one of the replay. The replay begins
    /// where the numbers fall back; of each state it has the last one, at its end.
    fn replayed(
        &mut self,
        session: &str,
        (before, seen, told): (u64, Option<u64>, u64),
        (first, seq): (u64, u64),
        store: &Store,
    ) -> Result<(), String> {
        let is_state = matches!(committed(session, seq, store)?.kind, EventKind::State(_));
        let place = if seen.is_none() && before > 0 && seq > before {
            Place::Loading { before: seq, seen, told }
        } else if is_state {
            Place::Loading { before, seen: Some(seen.unwrap_or(0).max(seq)), told }
        } else {
            if first <= told {
                return Err(format!("{session}: line {first} after {told} in a load"));
            }
            self.nothing_missing(session, told, first, true, store)?;
            Place::Loading { before, seen: Some(seen.unwrap_or(0).max(seq)), told: seq }
        };
        self.put(session, place);
        Ok(())
    }

    /// Checks that nothing is missing.
    pub(super) fn missed(&self, store: &Store) -> Result<(), String> {
        for (session, place) in &self.places {
            let key = store.public.get(session);
            let exists = key.is_some_and(|key| store.has(*key));
            if self.ride.is_none() || !exists || store.reused.contains(session) {
                continue;
            }
            let head = key.and_then(|key| store.journals.get(key)).map_or(0, |j| j.rows.len());
            match place {
                Place::At(last) => {
                    self.nothing_missing(session, *last, head as u64 + 1, false, store)?;
                }
                _ => return Err(format!("{session}: {place:?} to the end")),
            }
        }
        Ok(())
    }

    /// Checks that no line for this client is missing between two seen lines.
    fn nothing_missing(
        &self,
        session: &str,
        after: u64,
        before: u64,
        history: bool,
        store: &Store,
    ) -> Result<(), String> {
        for seq in after + 1..before {
            let row = committed(session, seq, store)?;
            let hidden = render(row, None, session, &self.view).is_none()
                || (history && matches!(row.kind, EventKind::State(_) | EventKind::Live))
                || (history && self.is_second() && is_state(row));
            if !hidden && !self.is_hidden_as_own(row) {
                let line = String::from_utf8_lossy(&row.line);
                return Err(format!("{session}: line {seq} is missing after {after}: {line}"));
            }
        }
        Ok(())
    }
}

/// Checks the answer about a message to a turn: in the journal, or returned, or a prompt.
fn steered(
    session: &str,
    text: &str,
    line: &Value,
    store: &Store,
    truth: &mut Truth,
) -> Result<(), String> {
    let taken = truth.steered.contains(text);
    let (result, own) = (&line["result"], &line["error"]["data"]["_acpd"]);
    let said_to_be_taken = result["outcome"] == "injected" || result["messageId"].is_string();
    if said_to_be_taken {
        truth.hit("message said to be taken");
        let key = store.public.get(session).filter(|_| !store.reused.contains(session));
        let journal = key.and_then(|key| store.journals.get(key));
        if !taken || journal.is_some_and(|journal| !journal.has(text)) {
            return Err(format!("{text} is said to be taken, and is not there: {line}"));
        }
    } else if result["outcome"] == "startedNewTurn" {
        truth.hit("message becomes a prompt");
        if taken {
            return Err(format!("{text} was taken, and becomes a prompt"));
        }
    } else if result["outcome"] == "promptRequired"
        || ["no_turn", "cannot_steer"].iter().any(|reason| own["reason"] == *reason)
    {
        truth.hit("message given back");
        if truth.read.contains(text) {
            return Err(format!("{text} was given back, and an agent has it"));
        }
        truth.given_back.insert(text.to_owned());
    }
    Ok(())
}

/// A committed line of a journal, or an error.
pub(super) fn committed<'s>(
    session: &str,
    seq: u64,
    store: &'s Store,
) -> Result<&'s EventRow, String> {
    let key: Option<&SessionKey> = store.public.get(session);
    let journal = key.and_then(|key| store.journals.get(key));
    journal
        .and_then(|journal| journal.rows.get(seq as usize - 1))
        .ok_or_else(|| format!("{session} {seq}: shown before it was committed"))
}

pub(super) fn line(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
