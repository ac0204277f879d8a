//! A prompt and its turn: a connection that outlives the daemon's process, and a thread that reads it.
//!
//! ```text
//!  begin: initialize ─▶ session/new, or attach to one that is idle ─▶ session/prompt
//!                                                                          │ lines, folded into blocks
//!  cancel: $/cancel_request ─┐                                             ▼
//!  the turn of the parent was cancelled ─▶ the same                  answer ─▶ Over; the connection ends
//! ```
//!
//! A connection of its own for each, because acpd lets a tool of an agent end or change only what was sent on the
//! same connection.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use acp_wire::acp::{ContentBlock, NewSessionResult, SteeringParams};
use acp_wire::{Id, Message, Outcome, build, parse, str_at};
use acpd_api::{
    AnswerParams, GivenAnswer, NAMESPACE, NewSessionMeta, PromptMeta, PromptRepeated, Reason, Role,
    SessionInfo, SessionRef, TurnEnded, TurnState, method,
};
use acpd_client::{Incoming, LinkReader, LinkWriter, Options};
use acpd_view::State;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::daemon::is_idle;
use crate::failure::Failure;
use crate::line::{Line, closed, read};
use crate::ticket::Ticket;

/// Notices of what has become of a prompt.
const ON_A_PROMPT: [&str; 3] =
    [method::TURN_STARTED, method::PROMPT_QUEUED, method::PROMPT_REPEATED];

/// Turns that run at the same time for one host.
pub(crate) const AT_ONCE: usize = 16;

/// A prompt to send, and its session.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
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
    /// The session whose tool this is: its number, and what it is.
    pub(crate) own: Option<(u64, SessionInfo)>,
    /// The caller waits for the turn, so it ends with the turn of that session.
    pub(crate) waits: bool,
    /// The idempotency key of the prompt.
    pub(crate) key: Option<String>,
}

/// A prompt that was sent.
#[derive(Debug)]
pub(crate) enum Sent {
    /// For the first time.
    New(Arc<Running>),
    /// Again under its key; the first time was for this turn.
    Before(Ticket),
}

#[derive(Debug, Clone)]
pub(crate) enum End {
    /// The agent answered, or acpd for it: the journal tells.
    Answered,
    /// There was an error.
    Failed(Failure),
    /// Another client's prompt came first, and ours was taken back.
    Busy(Failure),
    /// The daemon is away for good: the outcome is unknown.
    Unknown(Failure),
}

/// Prompts of this process by their tickets.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sent: BTreeMap<Ticket, Arc<Running>>,
    /// Prompts that are just being sent.
    begun: usize,
}

impl Turns {
    /// Keeps a place for a prompt. Returns whether there is one: not too many turns run.
    pub(crate) fn reserve(&mut self) -> bool {
        let running = self.sent.values().filter(|turn| !turn.is_over()).count();
        let is_free = running + self.begun < AT_ONCE;
        self.begun += usize::from(is_free);
        is_free
    }

    /// The prompt was sent, or could not be. Of turns that are over the journal tells.
    pub(crate) fn begun(&mut self, running: Option<&Arc<Running>>) {
        self.begun -= 1;
        if let Some(running) = running {
            self.sent.retain(|_, turn| !turn.is_over());
            self.sent.insert(running.ticket.clone(), Arc::clone(running));
        }
    }

    pub(crate) fn get(&self, ticket: &Ticket) -> Option<Arc<Running>> {
        self.sent.get(ticket).cloned()
    }
}

/// A prompt that was sent.
#[derive(Debug)]
pub(crate) struct Running {
    /// The turn that it becomes.
    pub(crate) ticket: Ticket,
    /// The session as it was before.
    pub(crate) session: SessionInfo,
    prompt: Id,
    writer: LinkWriter,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The end of the turn, when that is there. Lines are news, too.
    news: watch::Sender<Option<End>>,
    /// Requests next to the prompt; `None` when the turn is over.
    beside: Mutex<Option<Beside>>,
}

/// Requests next to the prompt, and the receivers of their answers.
#[derive(Debug)]
struct Beside {
    last_id: u64,
    waiting: Vec<(Id, oneshot::Sender<Answer>)>,
}

/// The outcome of a request next to the prompt.
type Answer = Result<Box<RawValue>, Failure>;

impl Running {
    /// Sends a prompt. Waits until there is a session for it.
    pub(crate) fn begin(options: &Options, wanted: Wanted) -> Result<Sent, Failure> {
        let mut line = Line::open(options)?;
        let begun = line.begin(wanted);
        let Line { reader, writer, last_id } = line;
        let Begun { session, ticket, prompt, own, early, is_repeated } =
            begun.inspect_err(|_| writer.end())?;
        if is_repeated {
            writer.end();
            return Ok(Sent::Before(ticket));
        }
        let state = State::new(&session.session_id).within(&session.cwd);
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            news: watch::Sender::new(None),
            beside: Mutex::new(Some(Beside { last_id, waiting: Vec::new() })),
        });
        let follower = Follower {
            reader,
            early,
            writer: writer.clone(),
            shared: Arc::clone(&shared),
            prompt: prompt.clone(),
            own,
            session: session.clone(),
        };
        thread::Builder::new()
            .name("turn".to_owned())
            .spawn(move || follower.follow())
            .map_err(|error| Failure::new(format!("cannot follow the turn: {error}")))?;
        Ok(Sent::New(Arc::new(Running { ticket, session, prompt, writer, shared })))
    }

    /// Subscribes to the lines from now on, and to the end.
    pub(crate) fn news(&self) -> watch::Receiver<Option<End>> {
        self.shared.news.subscribe()
    }

    /// The turn as far as the daemon has reported it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.shared.state)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.shared.news.borrow().is_some()
    }

    pub(crate) fn cancel(&self) {
        take_back(&self.writer, &self.prompt);
    }

    /// Says something into the turn.
    pub(crate) async fn steer(&self, text: &str) -> Result<Box<RawValue>, Failure> {
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

    /// Returns whether the turn waits for the answer to a question.
    pub(crate) fn waits(&self) -> bool {
        let state = self.state();
        let live = state.header().live.as_ref();
        live.is_some_and(|live| live.turn == TurnState::NeedsAction)
    }

    /// Sends a request next to the prompt.
    async fn ask(&self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, Failure> {
        let gone = || Failure::new("the turn is over");
        let (answer, asked) = oneshot::channel();
        {
            let mut beside = locked(&self.shared.beside);
            let beside = beside.as_mut().ok_or_else(gone)?;
            beside.last_id += 1;
            let id = Id::from(beside.last_id);
            self.writer.send(build::request(&id, method, params));
            beside.waiting.push((id, answer));
        }
        asked.await.map_err(|_| gone())?
    }
}

/// A prompt that was just sent.
struct Begun {
    session: SessionInfo,
    ticket: Ticket,
    prompt: Id,
    /// The session whose turn it ends with.
    own: Option<String>,
    /// Lines that came meanwhile.
    early: VecDeque<Incoming>,
    /// Sent before under its key.
    is_repeated: bool,
}

impl Line {
    /// Sends the prompt, in a session that is there or is made for it.
    fn begin(&mut self, wanted: Wanted) -> Result<Begun, Failure> {
        let agent = wanted.known.as_ref().map(|known| known.agent.raw().to_owned());
        let agent = agent.or_else(|| wanted.agent.clone());
        let cwd = agent.is_none().then(|| wanted.cwd.clone());
        self.greet(agent, cwd)?;
        let session = match &wanted.known {
            Some(known) => self.attach(known.exactly(), Role::Controller)?,
            None => self.make(&wanted)?,
        };
        if wanted.key.is_none() && !is_idle(&session) {
            return Err(busy(&session));
        }
        let own = wanted.own.filter(|_| wanted.waits).map(|(_, own)| own);
        if let Some(own) = &own {
            self.attach(own.exactly(), Role::Observer)?;
        }
        let mut ticket = Ticket {
            turn: session.prompts + 1,
            agent: session.agent.raw().to_owned(),
            session: session.session_id.raw().to_owned(),
        };
        let mut params = json!({"sessionId": ticket.session, "prompt": wanted.blocks});
        if let Some(key) = &wanted.key {
            let meta = PromptMeta { idempotency_key: Some(key.clone()), ..PromptMeta::default() };
            params["_meta"] = json!({ NAMESPACE: meta });
        }
        let prompt = self.send("session/prompt", &params)?;
        let own = own.map(|own| own.session_id.into_raw());
        let mut early = VecDeque::new();
        let mut is_repeated = false;
        if wanted.key.is_some()
            && let Some(turn) = self.turn_before(&prompt, &session, &mut early)?
        {
            ticket.turn = turn;
            is_repeated = true;
        }
        Ok(Begun { session, ticket, prompt, own, early, is_repeated })
    }

    /// Returns the turn of a prompt that was sent before under its key. Reads until the daemon reports that, or that
    /// the prompt waits or begins a turn, or refuses it.
    fn turn_before(
        &mut self,
        prompt: &Id,
        session: &SessionInfo,
        early: &mut VecDeque<Incoming>,
    ) -> Result<Option<u64>, Failure> {
        loop {
            let line = match self.reader.recv()? {
                Incoming::Line(line) => line,
                Incoming::Lost | Incoming::Stopped | Incoming::Back => continue,
                Incoming::Closed => return Err(closed()),
            };
            let (mut is_known, mut turn) = (false, None);
            match parse(&line) {
                Ok(Message::Response { id, .. }) => is_known = id == *prompt,
                Ok(Message::Notification { method, params: Some(params) }) => {
                    let of = str_at(params.get().as_bytes(), &["sessionId"]);
                    if of.as_deref() == Some(session.session_id.raw()) {
                        is_known = ON_A_PROMPT.contains(&&*method);
                        let repeated = (method == method::PROMPT_REPEATED)
                            .then(|| serde_json::from_str::<PromptRepeated>(params.get()).ok());
                        turn = repeated.flatten().map(|repeated| repeated.turn);
                    }
                }
                _ => {}
            }
            early.push_back(Incoming::Line(line));
            if is_known {
                return Ok(turn);
            }
        }
    }

    /// Begins a session, or finds the one that another client has begun by that name since it was looked for.
    fn make(&mut self, wanted: &Wanted) -> Result<SessionInfo, Failure> {
        let meta = NewSessionMeta {
            name: Some(wanted.name.clone()),
            reuse: false,
            parent: wanted.own.as_ref().map(|(number, _)| *number),
        };
        let params = json!({"cwd": wanted.cwd, "mcpServers": [], "_meta": {NAMESPACE: meta}});
        match self.call::<Box<RawValue>>("session/new", &params) {
            Ok(result) => {
                let made = NewSessionResult::from_raw(&result);
                let made = made.map_err(|error| Failure::new(error.to_string()))?;
                self.show(&made.session_id)
            }
            Err(Failure { reason: Some(Reason::NameTaken), session: Some(id), .. }) => {
                let session = SessionRef { session: id, ..SessionRef::default() };
                self.attach(session, Role::Controller)
            }
            Err(failure) => Err(failure),
        }
    }

    fn show(&mut self, id: &str) -> Result<SessionInfo, Failure> {
        let session = SessionRef { session: id.to_owned(), ..SessionRef::default() };
        self.call(method::SESSION_SHOW, &session)
    }
}

/// The connection from the prompt on.
struct Follower {
    reader: LinkReader,
    early: VecDeque<Incoming>,
    writer: LinkWriter,
    shared: Arc<Shared>,
    prompt: Id,
    own: Option<String>,
    session: SessionInfo,
}

impl Follower {
    fn follow(mut self) {
        let end = self.end();
        // Callers that wait for an answer get none.
        *locked(&self.shared.beside) = None;
        self.shared.news.send_replace(Some(end));
        self.writer.end();
    }

    /// Reads until the prompt is answered.
    fn end(&mut self) -> End {
        let mut came_late = false;
        loop {
            let early = self.early.pop_front().map(Ok);
            let line = match early.unwrap_or_else(|| self.reader.recv()) {
                Ok(Incoming::Line(line)) => line,
                Ok(Incoming::Lost | Incoming::Stopped | Incoming::Back) => continue,
                Ok(Incoming::Closed) => return End::Unknown(closed()),
                Err(error) => return End::Unknown(error.into()),
            };
            match parse(&line) {
                Ok(Message::Response { id, outcome }) if id == self.prompt => {
                    return match read(outcome) {
                        _ if came_late => End::Busy(busy(&self.session)),
                        Ok(_) => End::Answered,
                        Err(failure) => End::Failed(failure),
                    };
                }
                Ok(Message::Response { id, outcome }) => self.answered(&id, outcome),
                Ok(Message::Notification { method, params: Some(params) }) => {
                    let session = str_at(params.get().as_bytes(), &["sessionId"]);
                    if method == method::PROMPT_QUEUED {
                        // The prompt would wait for others, who may wait for this call.
                        came_late = true;
                        self.cancel();
                    } else if self.own.is_some() && session.as_deref() == self.own.as_deref() {
                        self.heard_of_own(&method, params.get());
                    } else {
                        locked(&self.shared.state).fold(&line);
                        self.shared.news.send_modify(|_| {});
                    }
                }
                // A tool of an agent is asked nothing.
                _ => {}
            }
        }
    }

    fn answered(&self, id: &Id, outcome: Outcome<'_>) {
        let mut beside = locked(&self.shared.beside);
        let Some(beside) = beside.as_mut() else { return };
        if let Some(at) = beside.waiting.iter().position(|(asked, _)| asked == id) {
            let (_, answer) = beside.waiting.swap_remove(at);
            // The caller no longer waits if this fails.
            drop(answer.send(read(outcome)));
        }
    }

    /// The session whose tool this is: if its turn is cancelled, so is what that turn waits for. Not every agent
    /// says so to its tools.
    fn heard_of_own(&self, method: &str, params: &str) {
        if method != method::TURN_ENDED {
            return;
        }
        let ended = serde_json::from_str::<TurnEnded>(params);
        if ended.is_ok_and(|ended| ["cancelled", "unwedged"].contains(&ended.outcome.word())) {
            self.cancel();
        }
    }

    fn cancel(&self) {
        take_back(&self.writer, &self.prompt);
    }
}

/// Ends the turn of a prompt, or takes the prompt back if it still waits: this one and no other.
fn take_back(writer: &LinkWriter, prompt: &Id) {
    writer.send(build::notification("$/cancel_request", &json!({ "requestId": prompt })));
}

fn busy(session: &SessionInfo) -> Failure {
    let name = session.handle().raw();
    Failure::new(format!("session `{name}` works on another prompt")).hint(
        "wait for it with `wait`, say something into it with `steer` if it is yours, or use another \
         session name",
    )
}

/// A value that several threads have.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_prompts_have_a_place_and_one_that_was_not_sent_gives_its_own_back() {
        let mut turns = Turns::default();
        assert!((0..AT_ONCE).all(|_| turns.reserve()));
        assert!(!turns.reserve() && !turns.reserve());
        turns.begun(None);
        assert!(turns.reserve());
        assert!(!turns.reserve());
    }
}
