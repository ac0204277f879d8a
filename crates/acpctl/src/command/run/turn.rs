//! One turn: everything between the prompt and its answer.

use acp_wire::acp::AgentCapabilities;
use acp_wire::{ErrorObject, Id, Message, Outcome, locate, parse, str_at};
use acpd_api::{
    AgentNotice, AgentState, ExitCode, NAMESPACE, PromptQueued, PromptRepeated, RestoreLevel,
    Restored, SessionInfo, SessionRef, SessionRowKey, SessionState, StateChanged, TurnEnded,
    TurnState, Untrusted, method,
};
use acpd_client::{LinkError, read_result};
use acpd_view::Settings;
use bytes::Bytes;
use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::current_activity;
use crate::live::{Event, Live};
use crate::permission::Questions;
use crate::screen::Screen;
use crate::text::{Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
pub(super) struct TurnArgs {
    /// Return when the prompt is saved, and print the session's id; the turn runs in the background.
    #[arg(short, long, conflicts_with = "thoughts")]
    pub(super) detach: bool,
    /// Show the agent's thoughts.
    #[arg(long)]
    thoughts: bool,
    /// Print one JSON object at the end: answer, outcome, session and usage.
    #[arg(long)]
    pub(super) json: bool,
    /// Print each message as a line of JSON.
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    json_stream: bool,
    /// Allow all requests of this turn, unless a `reject` rule matches or might match.
    #[arg(long, conflicts_with = "deny")]
    pub(super) yes: bool,
    /// Refuse all requests of this turn.
    #[arg(long)]
    pub(super) deny: bool,
    /// Do not read stdin, for loops such as `while read`.
    #[arg(short = 'N', long)]
    pub(super) no_stdin: bool,
}

pub(super) struct Turn<'a> {
    pub(super) ui: &'a mut Ui,
    pub(super) restored: Option<RestoreLevel>,
    pub(super) ended: Option<TurnEnded>,
    /// The earlier turn with the same key, whose outcome the prompt gets.
    pub(super) repeated: Option<u64>,
    /// The user cancelled the turn here.
    pub(super) is_cancelled: bool,
    pub(super) hello: Option<Box<RawValue>>,
    /// The agent's name in the configuration, if known.
    pub(super) profile: Option<String>,
    pub(super) agent: String,
    pub(super) can: AgentCapabilities,
    pub(super) session_id: String,
    live: Live,
    pub(super) screen: Screen,
    pub(super) is_stream: bool,
    questions: Questions,
    place: Place,
    is_running: bool,
}

pub(super) type Answer = Result<Box<RawValue>, ErrorObject>;

impl<'a> Turn<'a> {
    pub(super) fn new(live: Live, ui: &'a mut Ui, how: &TurnArgs) -> Turn<'a> {
        Turn {
            ui,
            restored: None,
            ended: None,
            repeated: None,
            is_cancelled: false,
            hello: None,
            profile: None,
            agent: String::new(),
            can: AgentCapabilities::default(),
            session_id: String::new(),
            live,
            screen: Screen::answer(how.thoughts, how.json),
            is_stream: how.json_stream,
            questions: Questions::default(),
            place: Place::Own,
            is_running: false,
        }
    }

    /// Joins a session. Turns before this prompt's are not shown.
    pub(super) fn join(&mut self, session: &SessionInfo) -> Result {
        let running = u32::from(session.turn.state != TurnState::Idle);
        self.place = Place::behind(session.queued + running);
        self.show_from(&session.session_id, &session.cwd, Settings::default());
        if session.turn.state != TurnState::Idle && !self.is_stream {
            self.ui.say(text!("now: {}", current_activity(session, human::now())));
        }
        if session.turn.state == TurnState::NeedsAction {
            self.questions.look(&mut self.live)?;
        }
        Ok(())
    }

    pub(super) fn show_from(&mut self, session: &Untrusted, folder: &Untrusted, known: Settings) {
        self.screen.transcript.open(session, folder, self.hello.as_deref(), known);
    }

    pub(super) fn call<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        self.try_call(method, params)?.map_err(|error| CommandError::rpc(&error))
    }

    pub(super) fn try_call<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Result<R, ErrorObject>> {
        let id = self.live.writer.request(method, params)?;
        match self.wait_for(&id)? {
            Some(Ok(result)) => Ok(Ok(read_result(method, &result)?)),
            Some(Err(error)) => Ok(Err(error)),
            None => Err(before_the_prompt()),
        }
    }

    /// Returns when the prompt is on disk, with the session at that time.
    pub(super) fn leave_behind(
        &mut self,
        session: &SessionRef,
        params: &impl Serialize,
    ) -> Result<SessionInfo> {
        let prompt = self.live.writer.request("session/prompt", params)?;
        // The answer arrives after everything before it is on disk.
        let show = self.live.writer.request(method::SESSION_SHOW, session)?;
        loop {
            let line = match self.live.next(self.ui)? {
                Event::Line(line) => line,
                Event::Ended(error) => {
                    return Err(CommandError::from(error).with_code(ExitCode::OutcomeUnknown));
                }
                _ => continue,
            };
            let Ok(Message::Response { id, outcome }) = parse(&line) else { continue };
            match outcome {
                Outcome::Error(error) if id == prompt || id == show => {
                    return Err(CommandError::rpc(&ErrorObject::from_raw(error)));
                }
                Outcome::Result(result) if id == show => {
                    return Ok(read_result(method::SESSION_SHOW, result)?);
                }
                _ => {}
            }
        }
    }

    /// Sends the prompt, and shows the turn until it ends or the user leaves. Ctrl-C cancels the
    /// turn; Ctrl-\ leaves it, and then there is no answer.
    pub(super) fn show(&mut self, params: &impl Serialize) -> Result<Option<Answer>> {
        self.is_running = true;
        self.ui.spin("thinking");
        let id = self.live.writer.request("session/prompt", params)?;
        let ended = self.wait_for(&id);
        // An open question stays for other clients.
        self.questions = Questions::default();
        self.screen.finish(self.ui)?;
        self.ui.finish()?;
        if !self.is_stream && !matches!(ended, Ok(None)) {
            self.screen.end_turn(self.ui)?;
        }
        ended
    }

    fn wait_for(&mut self, id: &Id) -> Result<Option<Answer>> {
        loop {
            match self.live.next(self.ui)? {
                Event::Line(line) => {
                    if let Some(outcome) = self.line(&line, id)? {
                        return Ok(Some(outcome));
                    }
                }
                Event::Interrupt => self.interrupt()?,
                Event::Detach => return Ok(None),
                Event::Late | Event::Link(_) => {}
                Event::Key(key) => {
                    self.questions.key(key, &mut self.live, self.ui)?;
                    self.spin("thinking");
                }
                Event::Ended(LinkError::Closed) if self.is_running => {
                    return Err(CommandError::new(
                        ExitCode::OutcomeUnknown,
                        "acpd closed the connection during the turn",
                    )
                    .hint("send another prompt to continue the session"));
                }
                Event::Ended(error) if self.is_running => {
                    return Err(CommandError::from(error).with_code(ExitCode::OutcomeUnknown));
                }
                Event::Ended(error) => return Err(error.into()),
            }
        }
    }

    /// Handles a line. Returns the outcome if the line is the answer to `id`.
    fn line(&mut self, line: &Bytes, id: &Id) -> Result<Option<Answer>> {
        let Ok(message) = parse(line) else { return Ok(None) };
        match &message {
            Message::Notification { method, params } => {
                let params = params.unwrap_or(RawValue::NULL);
                let is_withdrawn = method == "$/cancel_request";
                let shown = self.is_ours(method, params.get())? && !is_withdrawn;
                let is_printed_later = self.questions.on_answered(method, params);
                if self.is_stream && shown {
                    self.ui.json_relayed(line)?;
                } else if shown {
                    if let Some(label) = label(method, params.get()) {
                        self.spin(label);
                    }
                    if !is_printed_later {
                        self.screen.show(self.ui, method, params.get())?;
                    }
                }
                self.ask(&message)?;
                if is_withdrawn {
                    self.spin("thinking");
                }
                if method == method::PROMPT_REPEATED {
                    self.repeated = read::<PromptRepeated>(params.get()).map(|it| it.turn);
                }
                if method == method::TURN_ENDED {
                    self.ended = read(params.get());
                    // The turn still ran, so it was not repeated: the prompt waited for it.
                    let ended = self.ended.as_ref().map(|ended| ended.turn);
                    self.repeated = self.repeated.filter(|turn| Some(*turn) != ended);
                }
                // The exit code depends on the level, also in a stream.
                if method == method::RESTORED {
                    self.restored = read::<Restored>(params.get()).map(|restored| restored.level);
                }
            }
            Message::Response { id: answered, outcome } if answered == id => {
                if self.is_stream && self.is_running {
                    self.ui.json_relayed(line)?;
                }
                return Ok(Some(match outcome {
                    Outcome::Result(result) => Ok((*result).to_owned()),
                    Outcome::Error(error) => Err(ErrorObject::from_raw(error)),
                }));
            }
            Message::Request { .. } | Message::Response { .. } => {
                if self.is_stream && matches!(message, Message::Request { .. }) {
                    self.ui.json_relayed(line)?;
                }
                self.ask(&message)?;
            }
        }
        Ok(None)
    }

    fn ask(&mut self, message: &Message<'_>) -> Result {
        let (agent, session_id) = ((&self.agent).into(), (&self.session_id).into());
        let session = self.is_running.then_some(SessionRowKey { agent, session_id });
        self.questions.take(message, session.as_ref(), &mut self.live, self.ui)
    }

    /// Returns whether a notification is about this client's turn or the whole session.
    fn is_ours(&mut self, name: &str, params: &str) -> Result<bool> {
        match name {
            method::PROMPT_QUEUED => {
                let ahead = read::<PromptQueued>(params).map_or(0, |queued| queued.ahead);
                self.place = Place::behind(ahead);
                self.ui.end_line()?;
            }
            method::TURN_STARTED => {
                self.place.turn_started();
                self.ui.end_line()?;
            }
            method::TURN_ENDED => self.place.turn_ended(),
            "session/update" | method::PERMISSION_DECIDED => {
                return Ok(self.place.is_ours(params));
            }
            _ => {}
        }
        Ok(true)
    }

    /// Handles the first Ctrl-C; the second one ends the process elsewhere.
    fn interrupt(&mut self) -> Result {
        if !self.is_running {
            return Err(before_the_prompt());
        }
        self.live.writer.notify("session/cancel", &json!({ "sessionId": self.session_id }))?;
        self.is_cancelled = true;
        self.questions.cancel(&mut self.live)?;
        self.ui.spin("cancelling, Ctrl-C exits now");
        Ok(())
    }

    fn spin(&mut self, label: impl Into<Text>) {
        if !self.questions.any() {
            self.ui.spin(label);
        }
    }
}

/// Describes what the turn waits for after a notice.
fn label(name: &str, params: &str) -> Option<Text> {
    Some(match name {
        method::AGENT_STATE => {
            let AgentNotice { agent, state, .. } = read(params)?;
            match state {
                AgentState::Backoff => text!("{} failed, restarting it", agent),
                AgentState::Starting | AgentState::Initializing => text!("starting {}", agent),
                _ => return None,
            }
        }
        method::SESSION_STATE => {
            let is_restoring = read::<StateChanged>(params)?.state == SessionState::Restoring;
            return is_restoring.then(|| "restoring the session".into());
        }
        method::PROMPT_QUEUED => "queued".into(),
        method::TURN_STARTED => "thinking".into(),
        _ => return None,
    })
}

fn before_the_prompt() -> CommandError {
    CommandError::new(ExitCode::Cancelled, "cancelled before the prompt was sent")
}

fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Option<T> {
    serde_json::from_str(params).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    /// At most this many turns of others come first: a queued prompt can be withdrawn.
    Behind(u32),
    /// A turn began; its first update shows whose turn it is.
    Unsure(u32),
}

impl Place {
    fn behind(ahead: u32) -> Place {
        if ahead == 0 { Place::Own } else { Place::Behind(ahead) }
    }

    fn turn_started(&mut self) {
        match *self {
            Place::Behind(0) => *self = Place::Own,
            Place::Behind(left) => *self = Place::Unsure(left),
            Place::Own | Place::Unsure(_) => {}
        }
    }

    fn turn_ended(&mut self) {
        if let Place::Behind(left) | Place::Unsure(left) = *self {
            *self = Place::Behind(left.saturating_sub(1));
        }
    }

    /// Returns whether a `session/update` belongs to this client's turn. The daemon sends a prompt
    /// to all clients except its sender, before anything else of the turn.
    fn is_ours(&mut self, params: &str) -> bool {
        if let Place::Unsure(left) = *self {
            *self = if is_prompt(params) { Place::Behind(left) } else { Place::Own };
        }
        *self == Place::Own
    }
}

/// Returns whether an update is a turn's first prompt, not a message to a running turn.
fn is_prompt(params: &str) -> bool {
    let params = params.as_bytes();
    let kind = str_at(params, &["update", "sessionUpdate"]);
    let is_steered = locate(params, &["_meta", NAMESPACE, "steered"]).is_some();
    kind.is_some_and(|kind| kind == "user_message_chunk") && !is_steered
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = r#"{"update":{"sessionUpdate":"user_message_chunk"}}"#;
    const ANSWER: &str = r#"{"update":{"sessionUpdate":"agent_message_chunk"}}"#;

    #[test]
    fn nothing_is_ours_before_all_turns_ahead_have_ended() {
        let mut place = Place::behind(2);
        assert!(!place.is_ours(ANSWER));
        place.turn_ended();
        place.turn_started();
        assert!(!place.is_ours(PROMPT) && !place.is_ours(ANSWER));
        place.turn_ended();
        assert!(!place.is_ours(ANSWER));
        place.turn_started();
        assert!(place.is_ours(ANSWER));
    }

    #[test]
    fn without_turns_ahead_everything_is_ours() {
        let mut last = Place::behind(1);
        last.turn_ended();
        for mut place in [Place::behind(0), last] {
            place.turn_started();
            assert!(place.is_ours(PROMPT) && place.is_ours(ANSWER));
        }
        // A message to a turn is not the prompt of another.
        let steered = r#"{"update":{"sessionUpdate":"user_message_chunk"},"_meta":{"_acpd":{"steered":true}}}"#;
        assert!(Place::Unsure(1).is_ours(steered) && !Place::Unsure(1).is_ours(PROMPT));
    }
}
