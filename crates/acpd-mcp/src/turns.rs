//! Prompts that this process has sent, and their turns.
//!
//! ```text
//!  begin: initialize ─▶ session/new, or attach to an idle session ─▶ session/prompt
//!                                                                          │ lines, folded into blocks
//!  cancel ─────────────────────┐                                           ▼
//!  turn of the parent cancelled ─▶ $/cancel_request              answer ─▶ PromptOutcome; the connection ends
//! ```
//!
//! Each prompt has a connection and a thread, because acpd lets a tool of an agent end or change only what was sent
//! on the same connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use acp_wire::acp::{ContentBlock, NewSessionResult, SteeringParams};
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
use tokio::sync::{oneshot, watch};

use crate::daemon::{Daemon, is_idle};
use crate::failure::Failure;
use crate::ticket::Ticket;

/// Turns that run at the same time for one host.
pub(crate) const AT_ONCE: usize = 16;

/// A prompt that is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct PromptRequest {
    /// The session to continue; none to begin one.
    pub(crate) known: Option<SessionInfo>,
    /// The agent of a new session; none for the default of the directory.
    pub(crate) agent: Option<String>,
    /// The name of a new session.
    pub(crate) name: String,
    /// The directory of a new session.
    pub(crate) cwd: String,
    /// The prompt, as content blocks.
    pub(crate) blocks: Vec<Value>,
    /// The session whose tool this is: its number, and its description.
    pub(crate) own: Option<(u64, SessionInfo)>,
    /// The caller waits for the turn, so it ends with the turn of that session.
    pub(crate) waits: bool,
    /// The idempotency key of the prompt.
    pub(crate) key: Option<String>,
}

#[derive(Debug)]
pub(crate) enum SentPrompt {
    /// For the first time.
    New(Arc<RunningTurn>),
    /// Again under its key; the first time was for this turn.
    Before(Ticket),
}

#[derive(Debug, Clone)]
pub(crate) enum PromptOutcome {
    /// The agent answered, or acpd for it: the journal has the turn.
    Answered,
    Failed(Failure),
    /// The prompt of another client came first, and this one was taken back.
    Busy(Failure),
    /// The daemon is away for good: the end of the turn is unknown.
    Unknown(Failure),
}

/// Prompts of this process by their tickets.
#[derive(Debug, Default)]
pub(crate) struct SentTurns {
    sent: BTreeMap<Ticket, Arc<RunningTurn>>,
    /// Prompts that are just being sent.
    begun: usize,
}

impl SentTurns {
    /// Keeps a place for a prompt. Returns whether there is one: at most [`AT_ONCE`] turns run.
    pub(crate) fn reserve(&mut self) -> bool {
        let running = self.sent.values().filter(|turn| !turn.is_over()).count();
        let is_free = running + self.begun < AT_ONCE;
        self.begun += usize::from(is_free);
        is_free
    }

    /// Fills the place of a prompt, or frees it if the prompt could not be sent. Turns that are over are in the
    /// journal.
    pub(crate) fn add(&mut self, turn: Option<&Arc<RunningTurn>>) {
        self.begun -= 1;
        if let Some(turn) = turn {
            self.sent.retain(|_, turn| !turn.is_over());
            self.sent.insert(turn.ticket.clone(), Arc::clone(turn));
        }
    }

    pub(crate) fn get(&self, ticket: &Ticket) -> Option<Arc<RunningTurn>> {
        self.sent.get(ticket).cloned()
    }
}

/// A prompt that was sent, and the turn that it becomes.
#[derive(Debug)]
pub(crate) struct RunningTurn {
    pub(crate) ticket: Ticket,
    /// The session as it was before.
    pub(crate) session: SessionInfo,
    prompt: Id,
    writer: LinkWriter,
    state: Mutex<State>,
    /// Outcome, when that is there. Each line is announced, too.
    news: watch::Sender<Option<PromptOutcome>>,
    /// Other requests on the connection, and the receivers of their answers; none when the turn is over.
    asked: Mutex<Option<AskedRequests>>,
}

/// Result of a request other than the prompt.
type AskResult = Result<Box<RawValue>, Failure>;
type AskedRequests = Vec<(Id, oneshot::Sender<AskResult>)>;

impl RunningTurn {
    /// Sends a prompt. Waits until there is a session for it and, if it has a key, until the daemon has it.
    pub(crate) fn begin(daemon: &Daemon, request: PromptRequest) -> Result<SentPrompt, Failure> {
        let agent = request.known.as_ref().map(|known| known.agent.raw().to_owned());
        let agent = agent.or_else(|| request.agent.clone());
        let cwd = agent.is_none().then(|| request.cwd.clone());
        let mut connection = daemon.follow(agent, cwd)?;
        let opened = open_session(&mut connection, &request);
        let session = opened.inspect_err(|_| connection.writer().end())?;
        let own = request.own.filter(|_| request.waits).map(|(_, own)| own.session_id.into_raw());
        let mut ticket = Ticket {
            turn: session.prompts + 1,
            agent: session.agent.raw().to_owned(),
            session: session.session_id.raw().to_owned(),
        };
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
            .spawn(move || follower.follow(reader, own.as_deref(), accept))
            .map_err(|error| Failure::new(format!("cannot follow the turn: {error}")))?;
        // Without an acceptance, the outcome says why.
        match has_key.then(|| accepted.recv()) {
            Some(Ok(Some(before))) => {
                turn.writer.end();
                ticket.turn = before;
                Ok(SentPrompt::Before(ticket))
            }
            _ => Ok(SentPrompt::New(turn)),
        }
    }

    /// Announces each line from now on, and the outcome.
    pub(crate) fn news(&self) -> watch::Receiver<Option<PromptOutcome>> {
        self.news.subscribe()
    }

    /// The turn as far as it has come.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.news.borrow().is_some()
    }

    /// Ends the turn, or takes the prompt back if it still waits: this one and no other.
    pub(crate) fn cancel(&self) {
        // A connection that has ended has an outcome.
        drop(self.writer.cancel(&self.prompt));
    }

    /// Sends a message into the turn.
    pub(crate) async fn steer(&self, text: &str) -> AskResult {
        let prompt = [json!(ContentBlock::Text { text: text.to_owned() })];
        let params = SteeringParams::new(&self.ticket.session, &prompt);
        self.ask("_session/steering", &params).await
    }

    /// Answers a question of the turn, for the agent of the session whose tool this is.
    pub(crate) async fn answer(
        &self,
        id: &str,
        answer: GivenAnswer,
        parent: Option<u64>,
    ) -> Result<(), Failure> {
        let params = AnswerParams { id: id.to_owned(), answer, by: None, parent };
        self.ask(method::INTERACTION_ANSWER, &params).await.map(drop)
    }

    /// Returns whether it waits for the answer to a question.
    pub(crate) fn waits(&self) -> bool {
        let state = self.state();
        let live = state.header().live.as_ref();
        live.is_some_and(|live| live.turn == TurnState::NeedsAction)
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
    fn follow(&self, mut reader: LinkReader, own: Option<&str>, accept: mpsc::Sender<Option<u64>>) {
        let outcome = self.outcome(&mut reader, own, &accept);
        // Requests without an answer get none.
        *locked(&self.asked) = None;
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
        // Only a caller with a key waits for that.
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
                            // The prompt would wait for other clients, which may wait for this call.
                            came_late = true;
                            self.cancel();
                            accepted(None);
                            continue;
                        }
                        method::PROMPT_REPEATED => {
                            let repeated: Option<PromptRepeated> =
                                serde_json::from_str(params.get()).ok();
                            accepted(repeated.map(|repeated| repeated.turn));
                        }
                        method::TURN_STARTED => accepted(None),
                        _ => {}
                    }
                    self.state().fold(&line);
                    self.news.send_modify(|_| {});
                }
                // A tool of an agent is asked nothing.
                _ => {}
            }
        }
    }

    fn answered(&self, id: &Id, outcome: Outcome<'_>) {
        let mut asked = locked(&self.asked);
        let Some(asked) = asked.as_mut() else { return };
        if let Some(at) = asked.iter().position(|(asked, _)| asked == id) {
            let (_, answer) = asked.swap_remove(at);
            // A cancelled call waits no longer.
            drop(answer.send(read_answer("", outcome).map_err(Failure::from)));
        }
    }
}

/// Opens the session of a prompt: one that is known and idle, or a new one.
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
    if let Some((_, own)) = request.own.as_ref().filter(|_| request.waits) {
        connection.attach(own.exactly(), Role::Observer)?;
    }
    Ok(session)
}

/// Begins a session, or finds the one that another client has begun by that name since it was looked for.
fn make_session(
    connection: &mut Connection,
    request: &PromptRequest,
) -> Result<SessionInfo, Failure> {
    let meta = NewSessionMeta {
        name: Some(request.name.clone()),
        reuse: false,
        parent: request.own.as_ref().map(|(number, _)| *number),
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

/// Returns whether this notice of the session whose tool this is says that its turn was cancelled: then the turn for
/// which it waits is cancelled, too. Not every agent tells its tools.
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

/// Locks a value that several threads have.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsent_prompts_free_their_place() {
        let mut turns = SentTurns::default();
        assert!((0..AT_ONCE).all(|_| turns.reserve()));
        assert!(!turns.reserve() && !turns.reserve());
        turns.add(None);
        assert!(turns.reserve());
        assert!(!turns.reserve());
    }
}
