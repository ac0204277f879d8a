//! Prompts of this process, and their turns.
//!
//! ```text
//!  begin: initialize ─▶ session/new, or attach to an idle session ─▶ session/prompt
//!                                                                          │ lines, folded into blocks
//!  cancel ─────────────────────┐                                           ▼
//!  turn of the parent cancelled ─▶ $/cancel_request              answer ─▶ PromptOutcome; the connection ends
//! ```
//!
//! Each prompt has a connection and a thread, because acpd lets a tool of an agent end or change
//! only prompts of the same connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use acp_wire::acp::{ContentBlock, NewSessionResult, steering_params};
use acp_wire::{Id, Message, Outcome, parse, str_at};
use acpd_api::{
    AnswerParams, GivenAnswer, NAMESPACE, NewSessionMeta, PromptMeta, PromptRepeated, Reason, Role,
    SessionInfo, SessionRef, TurnEnded, TurnState, method,
};
use acpd_client::{Connection, LinkEvent, LinkReader, LinkWriter, read_answer};
use acpd_view::State;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use crate::daemon::{Daemon, is_idle, last_ticket};
use crate::failure::Failure;
use crate::ticket::Ticket;

/// Most running turns for one host.
pub(crate) const AT_ONCE: usize = 16;

#[derive(Debug, Clone, Default)]
pub(crate) struct PromptRequest {
    /// The session to continue; `None` for a new one.
    pub(crate) known: Option<SessionInfo>,
    /// The agent of a new session; `None` for the default of the directory.
    pub(crate) agent: Option<String>,
    pub(crate) name: String,
    pub(crate) cwd: String,
    pub(crate) blocks: Vec<Value>,
    /// The session that this server is lent to: its number and its description.
    pub(crate) own: Option<(u64, SessionInfo)>,
    /// The caller waits for the turn, so it ends with the caller's own turn.
    pub(crate) waits: bool,
    pub(crate) key: Option<String>,
}

/// The turn of a prompt; it is not running here if the key was used before.
pub(crate) type SentPrompt = (Ticket, Option<Arc<RunningTurn>>);

#[derive(Debug, Clone)]
pub(crate) enum PromptOutcome {
    /// The agent answered, or acpd for it: the journal has the turn.
    Answered,
    Failed(Failure),
    /// The prompt of another client came first, and this one was taken back.
    Busy(Failure),
    /// The daemon is away for good, and the end of the turn unknown.
    Unknown(Failure),
}

/// The turns of prompts that this process has sent. The journal has those that are over.
pub(crate) type SentTurns = BTreeMap<Ticket, Arc<RunningTurn>>;

#[derive(Debug)]
pub(crate) struct RunningTurn {
    pub(crate) ticket: Ticket,
    pub(crate) session: SessionInfo,
    prompt: Id,
    writer: LinkWriter,
    state: Mutex<State>,
    /// The outcome; also changes with each line.
    news: watch::Sender<Option<PromptOutcome>>,
    /// Other requests on the connection, and the receivers of their answers; `None` when the turn
    /// is over.
    asked: Mutex<Option<AskedRequests>>,
}

/// Result of a request other than the prompt.
type AskResult = Result<Box<RawValue>, Failure>;
type AskedRequests = Vec<(Id, oneshot::Sender<AskResult>)>;

impl RunningTurn {
    /// Sends a prompt. Waits until its session exists and, if it has a key, until the daemon has
    /// it. The turn keeps its `place` while it runs.
    pub(crate) fn begin(
        daemon: &Daemon,
        request: PromptRequest,
        place: OwnedSemaphorePermit,
    ) -> Result<SentPrompt, Failure> {
        let agent = request.known.as_ref().map(|known| known.agent.raw().to_owned());
        let agent = agent.or_else(|| request.agent.clone());
        let cwd = agent.is_none().then(|| request.cwd.clone());
        let mut connection = daemon.follow(agent, cwd)?;
        let opened = open_session(&mut connection, &request);
        let session = opened.inspect_err(|_| connection.writer.end())?;
        let own = watched(&request, &session).map(|own| own.session_id.raw().to_owned());
        let mut ticket = Ticket { turn: session.prompts + 1, ..last_ticket(&session) };
        let mut params = json!({"sessionId": ticket.session, "prompt": request.blocks});
        let has_key = request.key.is_some();
        if let Some(key) = request.key {
            let meta = PromptMeta { idempotency_key: Some(key), ..PromptMeta::default() };
            params["_meta"] = json!({ NAMESPACE: meta });
        }
        let (reader, writer) = connection.split()?;
        let prompt = writer.request("session/prompt", &params)?;
        let (accept, accepted) = mpsc::channel();
        let turn = Arc::new(RunningTurn {
            ticket: ticket.clone(),
            state: Mutex::new(State::new(&session.session_id).within(&session.cwd)),
            session,
            prompt,
            writer,
            news: watch::Sender::new(None),
            asked: Mutex::new(Some(Vec::new())),
        });
        let follower = Arc::clone(&turn);
        thread::Builder::new()
            .name("turn".to_owned())
            .spawn(move || follower.follow(reader, own.as_deref(), accept, place))
            .map_err(|error| Failure::new(format!("cannot follow the turn: {error}")))?;
        // Without an acceptance, the outcome has the reason.
        match has_key.then(|| accepted.recv()) {
            Some(Ok(Some(before))) => {
                turn.writer.end();
                ticket.turn = before;
                Ok((ticket, None))
            }
            _ => Ok((ticket, Some(turn))),
        }
    }

    /// Changes with each line from now on, and with the outcome.
    pub(crate) fn news(&self) -> watch::Receiver<Option<PromptOutcome>> {
        self.news.subscribe()
    }

    /// Waits for the outcome.
    pub(crate) async fn is_answered(&self) {
        drop(self.news().wait_for(Option::is_some).await);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.news.borrow().is_some()
    }

    /// Ends this turn, or takes its queued prompt back.
    pub(crate) fn cancel(&self) {
        // A connection that has ended has an outcome.
        drop(self.writer.cancel(&self.prompt));
    }

    pub(crate) async fn steer(&self, text: &str) -> AskResult {
        let prompt = [json!(ContentBlock::Text { text: text.to_owned() })];
        let params = steering_params(&self.ticket.session, &prompt);
        self.ask("_session/steering", &params).await
    }

    /// Answers a question of the turn in the name of the session that this server is lent to.
    pub(crate) async fn answer(
        &self,
        id: &str,
        answer: GivenAnswer,
        parent: Option<u64>,
    ) -> Result<(), Failure> {
        let params = AnswerParams { id: id.to_owned(), answer, by: None, parent };
        self.ask(method::INTERACTION_ANSWER, &params).await.map(drop)
    }

    /// Returns whether the turn waits for the answer to a question.
    pub(crate) fn waits(&self) -> bool {
        self.state().header().live_turn == Some(TurnState::NeedsAction)
    }

    /// Sends another request on the connection of the prompt.
    async fn ask(&self, method: &str, params: &impl Serialize) -> AskResult {
        let gone = || Failure::new("the turn is over");
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = locked(&self.asked);
            let asked = asked.as_mut().ok_or_else(gone)?;
            asked.push((self.writer.request(method, params)?, answer));
        }
        answered.await.map_err(|_| gone())?
    }

    /// Reads until the prompt is answered.
    fn follow(
        &self,
        mut reader: LinkReader,
        own: Option<&str>,
        accept: mpsc::Sender<Option<u64>>,
        place: OwnedSemaphorePermit,
    ) {
        let outcome = self.outcome(&mut reader, own, &accept);
        // Dropped senders fail the open requests.
        *locked(&self.asked) = None;
        drop(place);
        self.news.send_replace(Some(outcome));
        self.writer.end();
    }

    fn outcome(
        &self,
        reader: &mut LinkReader,
        own: Option<&str>,
        accept: &mpsc::Sender<Option<u64>>,
    ) -> PromptOutcome {
        let mut came_late = false;
        // Only a caller with a key receives this.
        let accepted = |turn| _ = accept.send(turn);
        loop {
            let line = match reader.recv() {
                Ok(LinkEvent::Line(line)) => line,
                Ok(_) => continue,
                Err(error) => return PromptOutcome::Unknown(error.into()),
            };
            match parse(&line) {
                Ok(Message::Response { id, outcome }) if id == self.prompt => {
                    accepted(None);
                    return match read_answer::<Box<RawValue>>("session/prompt", outcome) {
                        _ if came_late => PromptOutcome::Busy(busy(&self.session)),
                        Ok(_) => PromptOutcome::Answered,
                        Err(error) => PromptOutcome::Failed(error.into()),
                    };
                }
                Ok(Message::Response { id, outcome }) => self.answered(&id, outcome),
                Ok(Message::Notification { method, params: Some(params) }) => {
                    let session = str_at(params.get().as_bytes(), &["sessionId"]);
                    if own.is_some() && session.as_deref() == own {
                        if is_cancelled(&method, params.get()) {
                            self.cancel();
                        }
                        continue;
                    }
                    match &*method {
                        method::PROMPT_QUEUED => {
                            // Other clients, which may wait for this call, must not delay it.
                            came_late = true;
                            self.cancel();
                            accepted(None);
                            continue;
                        }
                        method::PROMPT_REPEATED => {
                            let repeated = serde_json::from_str::<PromptRepeated>(params.get());
                            accepted(repeated.ok().map(|repeated| repeated.turn));
                        }
                        method::TURN_STARTED => accepted(None),
                        _ => {}
                    }
                    self.state().fold(&line);
                    self.news.send_modify(|_| {});
                }
                // A tool of an agent gets no questions.
                _ => {}
            }
        }
    }

    fn answered(&self, id: &Id, outcome: Outcome<'_>) {
        let mut asked = locked(&self.asked);
        let Some(asked) = asked.as_mut() else { return };
        if let Some(at) = asked.iter().position(|(asked, _)| asked == id) {
            let (_, answer) = asked.swap_remove(at);
            // A cancelled call no longer waits.
            drop(answer.send(read_answer("", outcome).map_err(Failure::from)));
        }
    }
}

/// The caller's session, if its turn ends that of the prompt, and its lines can be told apart.
fn watched<'a>(request: &'a PromptRequest, session: &SessionInfo) -> Option<&'a SessionInfo> {
    let (_, own) = request.own.as_ref().filter(|_| request.waits)?;
    (own.session_id != session.session_id).then_some(own)
}

/// Opens the session of a prompt: a known idle one, or a new one.
fn open_session(
    connection: &mut Connection,
    request: &PromptRequest,
) -> Result<SessionInfo, Failure> {
    let session = match &request.known {
        Some(known) => connection.attach(known.exactly(), Role::Controller)?,
        None => make_session(connection, request)?,
    };
    if request.key.is_none() && !is_idle(&session) {
        return Err(busy(&session));
    }
    if let Some(own) = watched(request, &session) {
        connection.attach(own.exactly(), Role::Observer)?;
    }
    Ok(session)
}

/// Creates a session, or takes one with this name that another client has created meanwhile.
fn make_session(
    connection: &mut Connection,
    request: &PromptRequest,
) -> Result<SessionInfo, Failure> {
    let meta = NewSessionMeta {
        name: Some(request.name.clone()),
        parent: request.own.as_ref().map(|(number, _)| *number),
        ..NewSessionMeta::default()
    };
    let params = json!({"cwd": request.cwd, "mcpServers": [], "_meta": {NAMESPACE: meta}});
    let session = |session| SessionRef { session, ..SessionRef::default() };
    match connection.call::<_, Box<RawValue>>("session/new", &params) {
        Ok(result) => {
            let made = NewSessionResult::from_raw(&result);
            let made = made.map_err(|error| Failure::new(error.to_string()))?;
            Ok(connection.call(method::SESSION_SHOW, &session(made.session_id.into_owned()))?)
        }
        Err(error) => {
            let taken = error.data().filter(|data| data.reason == Reason::NameTaken);
            match taken.and_then(|data| data.session_id) {
                Some(id) => Ok(connection.attach(session(id.into_raw()), Role::Controller)?),
                None => Err(error.into()),
            }
        }
    }
}

/// Returns whether this notice reports that the turn of the caller's session was cancelled. Then
/// the turn that it waits for is cancelled, too, because not every agent notifies its tools.
fn is_cancelled(method: &str, params: &str) -> bool {
    let ended = || serde_json::from_str::<TurnEnded>(params).ok();
    let is_cancel = |ended: TurnEnded| ["cancelled", "unwedged"].contains(&ended.outcome.word());
    method == method::TURN_ENDED && ended().is_some_and(is_cancel)
}

fn busy(session: &SessionInfo) -> Failure {
    let name = session.handle().raw();
    Failure::new(format!("session `{name}` works on another prompt")).hint(
        "wait for it with `wait`, say something into it with `steer` if it is yours, or use another \
         session name",
    )
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::session;

    #[test]
    fn own_session_is_not_watched_next_to_one_with_its_id() {
        let own = Some((1, session()));
        let request = PromptRequest { own, waits: true, ..PromptRequest::default() };
        let mut other = SessionInfo { agent: "codex".into(), ..session() };
        assert_eq!(watched(&request, &other), None);
        other.session_id = "s-2".into();
        assert_eq!(watched(&request, &other), Some(&session()));
    }
}
