//! An agent that speaks version 2, as acpd's engine knows agents: one of version 1.
//!
//! Lines are converted at the edge, in both directions. An update of version 2 may change a part of
//! something (a message, a tool call, a terminal), where version 1 has the whole: so a
//! [`Translator`] knows what each session has shown.
//!
//! The answer to a prompt means in version 2 that the prompt is in the history, and the turn ends
//! with a state of the session:
//!
//! ```text
//!            the agent's answer, or its echo            `idle` with a stop reason
//!   asked ─────────────────────────────────▶ inserted ──────────────────────────▶ answered
//!     └── error: not in the history, no turn ──────────────────────────────────────▲
//! ```
//!
//! `idle` before the insertion is the end of other work. An answer that comes after the end is
//! dropped.
//!
//! Clients of version 2 get the agent's own lines: most are the same in both versions
//! ([`Heard::Same`]), and the engine keeps the others ([`Heard::Original`], [`Heard::Echo`],
//! [`Heard::State`]). Options and commands have no original: the engine lists them as they are in
//! force.

mod background;
mod call;
mod message;
mod options;
pub(super) mod patch;
mod question;
mod request;
mod setup;
mod terminal;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use hashlink::LinkedHashMap;
use serde_json::{Value, json};

use self::background::Background;
use self::call::{CallUpdate, Calls};
use self::message::{Messages, blocks};
use self::options::Options;
use self::question::Question;
use self::terminal::Terminals;
use super::objects::{items_at, quoted, value_at};
use crate::bound::LONGEST_ID;
use crate::build::{self, ErrorObject, code};
use crate::envelope::{Message, Outcome, parse};
use crate::id::Id;
use crate::{lossy_at, set_member, str_at};

pub use background::{BackgroundWork, WorkKind};
pub use request::with_server_types;
pub use setup::{ask_version_2, initialized_from_agent};

/// Sessions that are remembered. A process seldom has more.
const MOST: usize = 256;

const UPDATE: [&str; 2] = ["params", "update"];
const RESULT_OPTIONS: [&str; 2] = ["result", "configOptions"];
const SESSION: [&str; 2] = ["params", "sessionId"];

/// Meaning of an agent's line for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The agent's line, which is the same in version 1.
    Same,
    /// The agent's line, for clients of version 2. What follows is for others.
    Original,
    /// The agent's line, for clients of version 2: a prompt, which the engine has.
    Echo,
    /// The agent's line, which tells the state of this session.
    State(String, TalkState),
    /// A line of version 1.
    Line(Bytes),
    /// A line of version 1 about a tool call of which the agent has said more.
    Part(Bytes),
    /// The agent has the prompt of this request in the history, as the message with this id. Its
    /// answer comes later.
    Inserted(Id, Option<String>),
    /// The whole background work of a session.
    Background {
        /// The agent's id of the session.
        session: String,
        /// All parts of the work.
        work: Vec<BackgroundWork>,
    },
}

/// Activity of a session, as its agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalkState {
    /// Nothing, but for work in the background.
    Idle,
    /// Work, or something that the agent does not know.
    Running,
    /// Wait for a person.
    RequiresAction,
}

/// The state of a conversation with one process.
#[derive(Debug, Clone, Default)]
pub struct Translator {
    /// Requests to the agent whose answers depend on them.
    asked: BTreeMap<Id, Asked>,
    /// By the agent's ids, also of subagents.
    talks: LinkedHashMap<String, Talk>,
    /// Number of questions.
    questions: u64,
}

#[derive(Debug, Clone)]
enum Asked {
    Prompt(Prompt),
    /// The turn has ended before the agent has answered the prompt.
    Over,
    /// Has the session, if the request names it.
    Opening(Option<String>),
    /// An option of this session.
    Setting(String),
    Closing(String),
}

#[derive(Debug, Clone)]
struct Prompt {
    session: String,
    is_inserted: bool,
    is_answered: bool,
    /// The id of its message, once the agent has named it.
    message: Option<String>,
    /// Text of the prompt, if other work of the agent may say messages before it.
    text: Option<String>,
}

impl Prompt {
    fn new(session: String) -> Self {
        Self { session, is_inserted: false, is_answered: false, message: None, text: None }
    }
}

/// State of one session, as the agent has told it.
#[derive(Debug, Clone, Default)]
struct Talk {
    messages: Messages,
    calls: Calls,
    terminals: Terminals,
    options: Options,
    background: Background,
    /// The agent has said that it works.
    is_running: bool,
}

impl Translator {
    /// Notes an open request. `session`: the one that it names.
    pub fn asked(&mut self, id: Id, method: &str, session: Option<String>) {
        let asked = match (method, session) {
            ("session/prompt", Some(session)) => Asked::Prompt(Prompt::new(session)),
            ("session/close" | "session/delete", Some(session)) => Asked::Closing(session),
            // A request for a fork names its origin.
            ("session/new" | "session/fork", _) => Asked::Opening(None),
            ("session/load" | "session/resume", session) => Asked::Opening(session),
            (
                "session/set_mode" | "session/set_model" | "session/set_config_option",
                Some(session),
            ) => Asked::Setting(session),
            _ => return,
        };
        self.asked.insert(id, asked);
    }

    /// Restores that a prompt is in the history.
    pub fn inserted(&mut self, id: &Id) {
        if let Some(Asked::Prompt(prompt)) = self.asked.get_mut(id) {
            prompt.is_inserted = true;
        }
    }

    /// Restores that a session has shown a tool call.
    pub fn restore_call(&mut self, session: &str, call: &str) {
        self.talk(session).calls.restore(call);
    }

    /// Restores what a session has told of its work.
    pub fn restore_background(&mut self, session: &str, work: Vec<BackgroundWork>) {
        self.talk(session).background = Background::restored(work);
    }

    /// Restores which option is the mode. `options`: the JSON texts of their values, by id.
    pub fn restore_mode(
        &mut self,
        session: &str,
        mode: Option<&str>,
        options: &BTreeMap<String, String>,
    ) {
        if let Some(mode) = mode {
            self.talk(session).options.restore_mode(mode, options);
        }
    }

    /// The answer to a request cannot be read.
    pub fn forget(&mut self, id: &Id) {
        self.asked.remove(id);
    }

    /// Converts a line of the engine for the agent.
    pub fn to_agent(&mut self, line: &Bytes) -> Bytes {
        let Ok(Message::Request { id, method, .. }) = parse(line) else { return line.clone() };
        let session = str_at(line, &SESSION);
        let talk = session.as_deref().and_then(|session| self.talks.get_mut(session));
        if let Some(talk) = talk.filter(|_| method == "session/load") {
            // The replay begins with nothing shown.
            let Talk { options, background, is_running, .. } = std::mem::take(talk);
            *talk = Talk { options, background, is_running, ..Talk::default() };
        }
        let talk = session.as_deref().and_then(|session| self.talks.get(session));
        let converted = request::to_v2(&method, line, talk.map(|talk| &talk.options));
        let is_running = talk.is_some_and(|talk| talk.is_running);
        let session = session.map(Cow::into_owned);
        self.asked(id.clone(), &method, session);
        if let Some(Asked::Prompt(prompt)) = self.asked.get_mut(&id) {
            prompt.text = is_running.then(|| text_of(line, &["params", "prompt"]));
        }
        converted
    }

    /// Converts a line of the agent for the engine, in order.
    pub fn from_agent(&mut self, line: &Bytes) -> Vec<Heard> {
        match parse(line) {
            Ok(Message::Response { id, outcome }) => self.answered(id, outcome, line),
            Ok(Message::Request { method, .. }) if method == "session/request_permission" => {
                self.permission_asked(line)
            }
            Ok(Message::Notification { method, .. }) if method == "session/update" => {
                self.updated(line)
            }
            _ => vec![Heard::Same],
        }
    }

    fn permission_asked(&mut self, line: &Bytes) -> Vec<Heard> {
        let Some(session) = id_at(line, &SESSION) else { return vec![Heard::Same] };
        self.questions += 1;
        let number = self.questions;
        let Talk { calls, terminals, .. } = self.talk(&session);
        let Question { update, line, is_whole } = question::from_v2(line, number, calls, terminals);
        let update = update.map(with_update(&notification(&session, &json!({}))));
        update.into_iter().chain([part(line, is_whole)]).collect()
    }

    fn talk(&mut self, session: &str) -> &mut Talk {
        recent(&mut self.talks, session, MOST)
    }

    fn answered(&mut self, id: Id, outcome: Outcome<'_>, line: &Bytes) -> Vec<Heard> {
        let is_result = matches!(outcome, Outcome::Result(_));
        match self.asked.remove(&id) {
            Some(Asked::Prompt(prompt))
                if is_result && value_at(line, &["result", "stopReason"]).is_none() =>
            {
                let message = id_at(line, &["result", "messageId"]).map(Cow::into_owned);
                let message = message.or(prompt.message);
                let Prompt { session, text, .. } = prompt;
                let news =
                    (!prompt.is_inserted).then(|| Heard::Inserted(id.clone(), message.clone()));
                let inserted =
                    Prompt { session, is_inserted: true, is_answered: true, message, text };
                self.asked.insert(id, Asked::Prompt(inserted));
                news.into_iter().collect()
            }
            Some(Asked::Over) => Vec::new(),
            Some(Asked::Opening(session)) if is_result => self.opened(session, line),
            Some(Asked::Setting(session)) if is_result => {
                let options = &mut self.talk(&session).options;
                let before = options.clone();
                let (line, mode) = options.in_list(line, &RESULT_OPTIONS);
                // Version 1 has no options in the answer to `session/set_mode`.
                let list = value_at(&line, &RESULT_OPTIONS).filter(|_| *options != before);
                let list = list.map(|list| {
                    let update = json!({"sessionUpdate": "config_option_update"});
                    let path = [UPDATE[0], UPDATE[1], "configOptions"];
                    Heard::Line(set_member(&notification(&session, &update), &path, &list))
                });
                let mode = mode.map(|mode| mode_told(&session, &mode));
                list.into_iter().chain(mode).chain([Heard::Line(line)]).collect()
            }
            Some(Asked::Closing(session)) if is_result => {
                self.talks.remove(&session);
                // The session may be open again, with a later prompt.
                let of_it = |ask: &Id, asked: &Asked| match asked {
                    Asked::Prompt(prompt) => {
                        prompt.session == session && ask.as_issued() < id.as_issued()
                    }
                    _ => false,
                };
                let open = self.asked.extract_if(.., |ask, asked| of_it(ask, asked));
                let cancelled = json!({"stopReason": "cancelled"});
                let ended = open.map(|(id, _)| Heard::Line(build::response(&id, &cancelled)));
                ended.chain([Heard::Line(line.clone())]).collect()
            }
            _ => vec![Heard::Same],
        }
    }

    /// The options and commands of a session, if the answer has any.
    fn opened(&mut self, session: Option<String>, line: &Bytes) -> Vec<Heard> {
        let made = || str_at(line, &["result", "sessionId"]).map(Cow::into_owned);
        let Some(session) = session.or_else(made) else { return vec![Heard::Same] };
        let (answer, commands) = setup::opened_from_v2(line);
        let answer = self.talk(&session).options.in_answer(answer);
        let mut heard = vec![Heard::Line(answer)];
        if let Some(commands) = commands {
            let update = json!({"sessionUpdate": "available_commands_update"});
            let line = notification(&session, &update);
            let path = [UPDATE[0], UPDATE[1], "availableCommands"];
            heard.push(Heard::Line(set_member(&line, &path, &commands)));
        }
        heard
    }

    fn updated(&mut self, line: &Bytes) -> Vec<Heard> {
        let (Some(session), Some(update)) = (id_at(line, &SESSION), value_at(line, &UPDATE)) else {
            return vec![Heard::Same];
        };
        let kind = str_at(&update, &["sessionUpdate"]).unwrap_or_default();
        let id = || id_at(&update, &["messageId"]).unwrap_or_default();
        if let "user_message" | "user_message_chunk" = &*kind
            && let Some(inserted) = self.echoed(&session, &id(), line)
        {
            return inserted;
        }
        if kind == "state_update" {
            return self.state_told(&session, &update, line);
        }
        let talk = self.talk(&session);
        talk.background.note(&kind, &update);
        let with = |update: Bytes| Heard::Line(set_member(line, &UPDATE, &update));
        let original = [Heard::Original].into_iter();
        match &*kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                match talk.messages.chunk(&kind, &id(), &update) {
                    Some(gap) => {
                        let gap = with(set_member(&update, &["content"], &gap));
                        original.chain([gap, Heard::Line(line.clone())]).collect()
                    }
                    None => vec![Heard::Same],
                }
            }
            "user_message" | "agent_message" | "agent_thought" => {
                let blocks = blocks(&update);
                let added = blocks.map(|blocks| talk.messages.replaced(&kind, &id(), blocks));
                let chunk = set_member(
                    &update,
                    &["sessionUpdate"],
                    quoted(&format!("{kind}_chunk")).as_bytes(),
                );
                let added = added.into_iter().flatten();
                let added = added.map(|block| with(set_member(&chunk, &["content"], &block)));
                original.chain(added).collect()
            }
            "tool_call_update" => match talk.calls.update(&update, &mut talk.terminals) {
                CallUpdate { update: same, is_whole: true } if same == update => vec![Heard::Same],
                update => original.chain([with_update(line)(update)]).collect(),
            },
            "tool_call_content_chunk" => {
                let added = talk.calls.add_content(&update, &mut talk.terminals);
                original.chain(added.into_iter().map(with_update(line))).collect()
            }
            "terminal_update" | "terminal_output_chunk" => {
                let changed = talk.terminals.told(&update);
                let calls = changed.map(|id| talk.calls.showing(&id, &mut talk.terminals));
                original.chain(calls.into_iter().flatten().map(with_update(line))).collect()
            }
            "plan_update" => match setup::plan_from_v2(&update) {
                same if same == update => vec![Heard::Same],
                plan => original.chain([with(plan)]).collect(),
            },
            "available_commands_update" => {
                vec![with(setup::commands_in(&update, &["availableCommands"]))]
            }
            "config_option_update" => {
                let (options, mode) = talk.options.in_list(&update, &["configOptions"]);
                let mode = mode.map(|mode| mode_told(&session, &mode));
                [with(options)].into_iter().chain(mode).collect()
            }
            // The answer ends the replay.
            "replay_complete" => Vec::new(),
            _ => vec![Heard::Same],
        }
    }

    /// The engine has the message of a prompt already. `None`: it is another message.
    fn echoed(&mut self, session: &str, id: &str, line: &Bytes) -> Option<Vec<Heard>> {
        let (ask, prompt) = self.prompt_of(session)?;
        let is_it = match (&prompt.message, &prompt.text) {
            (Some(message), _) => message == id,
            (None, Some(prompt)) => {
                let said = text_said(line);
                !said.trim().is_empty() && (prompt.contains(said.trim()) || said.contains(prompt))
            }
            (None, None) => true,
        };
        // Without an id only the answer says that it is in the history.
        if !is_it || id.is_empty() {
            return (is_it && !prompt.is_inserted).then(|| vec![Heard::Echo]);
        }
        prompt.message = Some(id.to_owned());
        let is_news = !std::mem::replace(&mut prompt.is_inserted, true);
        let inserted = is_news.then(|| Heard::Inserted(ask, prompt.message.clone()));
        Some([Heard::Echo].into_iter().chain(inserted).collect())
    }

    /// The oldest open prompt of a session.
    fn prompt_of(&mut self, session: &str) -> Option<(Id, &mut Prompt)> {
        let open = self.asked.iter_mut().filter_map(|(id, asked)| match asked {
            Asked::Prompt(prompt) if prompt.session == session => Some((id, prompt)),
            _ => None,
        });
        let oldest = open.min_by_key(|(id, _)| id.as_issued());
        oldest.map(|(id, prompt)| (id.clone(), prompt))
    }

    fn state_told(&mut self, session: &str, update: &Bytes, line: &Bytes) -> Vec<Heard> {
        let state = match str_at(update, &["state"]).as_deref() {
            Some("idle") => TalkState::Idle,
            Some("requires_action") => TalkState::RequiresAction,
            _ => TalkState::Running,
        };
        let told = [Heard::State(session.to_owned(), state)];
        self.talk(session).is_running = state != TalkState::Idle;
        if state == TalkState::Idle
            && let Some((_, prompt)) = self.prompt_of(session)
        {
            prompt.text = None;
        }
        let work = self.talk(session).background.listed(update);
        let work = work.map(|work| Heard::Background { session: session.to_owned(), work });
        told.into_iter().chain(self.turn_told(session, update, line)).chain(work).collect()
    }

    fn turn_told(&mut self, session: &str, update: &Bytes, line: &Bytes) -> Vec<Heard> {
        let is_idle = str_at(update, &["state"]).is_some_and(|state| state == "idle");
        // Without one it is the state, not an end.
        let Some(stop) = str_at(update, &["stopReason"]).filter(|_| is_idle) else {
            return Vec::new();
        };
        let Talk { calls, terminals, .. } = self.talk(session);
        let updates = calls.turn_ended(terminals);
        let mut heard: Vec<_> = updates.into_iter().map(with_update(line)).collect();
        let Some((id, prompt)) = self.prompt_of(session) else { return heard };
        if !prompt.is_inserted {
            return heard;
        }
        let line = end_of_turn(&id, &stop, update);
        if prompt.is_answered {
            self.asked.remove(&id);
        } else {
            self.asked.insert(id, Asked::Over);
        }
        heard.push(Heard::Line(line));
        heard
    }
}

/// The id at a path. `None`: there is none, or it is too long to be kept.
fn id_at<'a>(json: &'a Bytes, path: &[&str]) -> Option<Cow<'a, str>> {
    str_at(json, path).filter(|id| id.len() <= LONGEST_ID)
}

/// The entry of a name; a new one takes the place of the one that was used longest ago.
fn recent<'a, T: Default>(
    all: &'a mut LinkedHashMap<String, T>,
    name: &str,
    most: usize,
) -> &'a mut T {
    if !all.contains_key(name) {
        if all.len() >= most {
            all.pop_front();
        }
        all.insert(name.to_owned(), T::default());
    }
    all.to_back(name).expect("it is there")
}

fn with_update(line: &Bytes) -> impl Fn(CallUpdate) -> Heard {
    |CallUpdate { update, is_whole }| part(set_member(line, &UPDATE, &update), is_whole)
}

fn part(line: Bytes, is_whole: bool) -> Heard {
    if is_whole { Heard::Line(line) } else { Heard::Part(line) }
}

fn mode_told(session: &str, mode: &str) -> Heard {
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
    Heard::Line(notification(session, &update))
}

fn notification(session: &str, update: &Value) -> Bytes {
    build::notification("session/update", &json!({"sessionId": session, "update": update}))
}

/// The text of a user message, of a part of it, or of a line about something else.
pub fn text_said(line: &Bytes) -> String {
    text_of(line, &["params", "update", "content"])
}

/// The texts of a content block, or of a list of them.
fn text_of(json: &Bytes, path: &[&str]) -> String {
    let Some(content) = value_at(json, path) else { return String::new() };
    let blocks = items_at(&content, &[]).unwrap_or_else(|| vec![content]);
    blocks.iter().filter_map(|block| lossy_at(block, &["text"])).collect()
}

/// An item of a tool call's content.
fn text_item(text: &str) -> Bytes {
    json!({"type": "content", "content": {"type": "text", "text": text}}).to_string().into()
}

/// The answer that version 1 gives at the end of a turn.
fn end_of_turn(id: &Id, stop: &str, idle: &Bytes) -> Bytes {
    if stop == "error" {
        let error = value_at(idle, &["error"]);
        let error = error.and_then(|error| serde_json::from_slice(&error).ok());
        let text = "the turn failed, and the agent does not say why";
        return build::error(id, &error.unwrap_or_else(|| ErrorObject::new(code::INTERNAL, text)));
    }
    const KNOWN: [&str; 5] =
        ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
    let stop = if KNOWN.contains(&stop) { stop } else { KNOWN[0] };
    let line = build::response(id, &json!({ "stopReason": stop }));
    ["usage", "_meta"].iter().fold(line, |line, name| match value_at(idle, &[name]) {
        Some(value) => set_member(&line, &["result", name], &value),
        None => line,
    })
}
