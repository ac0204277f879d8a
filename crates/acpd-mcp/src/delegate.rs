//! Tools to work with other agents. Documentation of arguments and tools is their description for
//! models.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp_wire::acp::{self, SteeringOutcome};
use acpd_api::{
    AgentList, Empty, GivenAnswer, Question, Reason, Role, SessionInfo, SessionList,
    SessionListParams, SessionRef, method,
};
use acpd_sys::tree::is_marked;
use acpd_view::Turn;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::daemon::{EndOnDrop, is_known_over, last_ticket, run_blocking, wait_until_over};
use crate::failure::Failure;
use crate::paths::{directory, folder, link};
use crate::report::{Report, Status, ToAnswer, age, line, row};
use crate::server::Server;
use crate::teller::Teller;
use crate::ticket::Ticket;
use crate::turns::{AT_ONCE, PromptOutcome, PromptRequest, RunningTurn, SentPrompt, locked};

/// Most bytes of a prompt.
const PROMPT: usize = 1 << 20;
/// Most files of a prompt.
const FILES: usize = 64;
const LISTED: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
struct PromptArgs {
    /// Name of the session, unique in its directory: a new name begins a session, a known one continues it.
    session_name: String,
    /// The task of the other agent. It sees nothing of your conversation: include everything that it needs.
    prompt: String,
    /// Which agent, for a new session; `list_agents` has them. Default: the one configured for the directory.
    #[serde(default)]
    agent: Option<String>,
    /// The directory of the session. Default: yours.
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// Files that the other agent is to look at.
    #[serde(default)]
    files: Vec<PathBuf>,
    /// `false` returns a ticket at once, and the turn runs on beside you.
    #[serde(default = "yes")]
    wait: bool,
    /// Any text of up to 255 characters. A call that failed can be repeated with it: the same key in the same session is the
    /// same prompt, and is carried out once.
    #[serde(default)]
    key: Option<String>,
}

/// Arguments of tools about one turn.
#[derive(Debug, Deserialize, JsonSchema)]
struct TurnArgs {
    /// The ticket that `prompt` gave, or the name of a session for its last turn.
    ticket: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WaitArgs {
    /// The ticket that `prompt` gave, or the name of a session for its last turn.
    ticket: String,
    /// Give up waiting after this number of seconds; the turn continues. Default: wait until it is over.
    #[serde(default)]
    timeout_seconds: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SteerArgs {
    /// The ticket that `prompt` gave, or the name of a session for its last turn.
    ticket: String,
    /// The message for the running turn.
    message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AnswerArgs {
    /// The ticket that `prompt` gave, or the name of a session for its last turn.
    ticket: String,
    /// Which question: `question` of an entry of `toAnswer`.
    question: String,
    /// Your answer to the whole question, for this time alone. A form is filled in with `allow`.
    answer: YesOrNo,
    /// The members of the form, if it is one.
    #[serde(default)]
    content: Option<serde_json::Map<String, Value>>,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum YesOrNo {
    Allow,
    Deny,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListArgs {
    /// Also those of other directories.
    #[serde(default)]
    everywhere: bool,
}

fn yes() -> bool {
    true
}

#[tool_router(router = delegate, vis = "pub(crate)")]
impl Server {
    /// Gives work to another coding agent in a session with a name, and returns what came of it: its last answer, the
    /// files that it changed, its plan. A known name continues that conversation. Permissions that it asks for are
    /// decided by a person, who may take long.
    #[tool]
    async fn prompt(
        &self,
        Parameters(args): Parameters<PromptArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<Report, Failure> {
        let own = self.own_session().await?;
        let request = self.request(args, own).await?;
        let waits = request.waits;
        let (ticket, running) = self.begin(request).await?;
        if waits {
            // A host that cancels the call does not want the turn either.
            let waited = self.until_over(&ticket, &context).await;
            waited.inspect_err(|_| running.iter().for_each(|running| running.cancel()))?;
        }
        self.report(&ticket).await
    }

    /// Return the outcome of a turn, or its present state, at once.
    #[tool(annotations(read_only_hint = true))]
    async fn result(
        &self,
        Parameters(TurnArgs { ticket }): Parameters<TurnArgs>,
    ) -> Result<Report, Failure> {
        self.report(&self.ticket(&ticket).await?).await
    }

    /// Waits until a turn is over, and returns what came of it.
    #[tool(annotations(read_only_hint = true))]
    async fn wait(
        &self,
        Parameters(args): Parameters<WaitArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<Report, Failure> {
        let ticket = self.ticket(&args.ticket).await?;
        let over = self.until_over(&ticket, &context);
        match args.timeout_seconds {
            Some(seconds) => {
                timeout(Duration::from_secs(seconds.into()), over).await.unwrap_or(Ok(()))?;
            }
            None => over.await?,
        }
        self.report(&ticket).await
    }

    /// Ends a turn that you began, or takes its prompt back if it has not begun.
    #[tool]
    async fn cancel(
        &self,
        Parameters(TurnArgs { ticket }): Parameters<TurnArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<Report, Failure> {
        let ticket = self.ticket(&ticket).await?;
        self.own_turn(&ticket)?.cancel();
        self.until_over(&ticket, &context).await?;
        self.report(&ticket).await
    }

    /// Says something into a turn that you began, while it runs.
    #[tool]
    async fn steer(
        &self,
        Parameters(SteerArgs { ticket, message }): Parameters<SteerArgs>,
    ) -> Result<CallToolResult, Failure> {
        let ticket = self.ticket(&ticket).await?;
        let taken = self.own_turn(&ticket)?.steer(&message).await?;
        match SteeringOutcome::from_raw(&taken) {
            Some(SteeringOutcome::Injected | SteeringOutcome::StartedNewTurn) => {
                Ok(CallToolResult::structured(json!({"taken": true})))
            }
            Some(SteeringOutcome::PromptRequired) => Err(Failure::new("the turn is over")
                .hint("send the message with `prompt` and the name of the session")),
            _ => Err(Failure::new("the agent did not take the message")),
        }
    }

    /// Answers a question of the other agent in a turn that you began (`toAnswer` in what `prompt`, `wait` and `result`
    /// return), for this time alone, and waits on like `wait`. Allow only what you have been asked to do yourself.
    #[tool]
    async fn answer(
        &self,
        Parameters(args): Parameters<AnswerArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<Report, Failure> {
        let ticket = self.ticket(&args.ticket).await?;
        let turn = self.own_turn(&ticket)?;
        let open = self.daemon.questions(&turn.session).await?;
        let open = open.iter().find(|open| open.id == args.question).ok_or_else(|| {
            Failure::new("no such question is open; it may be answered already")
                .hint("`result` tells how the turn stands")
        })?;
        let is_permission = matches!(open.question, Question::Permission { .. });
        let given = match (is_permission, args.answer) {
            (true, YesOrNo::Allow) => GivenAnswer::Allow { always: false, option: None },
            (true, YesOrNo::Deny) => GivenAnswer::Deny { always: false, option: None },
            (false, YesOrNo::Allow) => {
                GivenAnswer::Accept { content: args.content.map(Value::Object) }
            }
            (false, YesOrNo::Deny) => GivenAnswer::Decline,
        };
        turn.answer(&args.question, given, self.own).await?;
        self.until_over(&ticket, &context).await?;
        self.report(&ticket).await
    }

    /// The coding agents that can be given work.
    #[tool(annotations(read_only_hint = true))]
    async fn list_agents(&self) -> Result<CallToolResult, Failure> {
        let list: AgentList = self.daemon.ask(method::AGENT_LIST, Empty {}).await?;
        let agents = list.agents.iter().filter(|agent| agent.installed != Some(false));
        let rows = agents.map(|agent| {
            row(json!({
                "name": line(&agent.name), "title": line(&agent.title),
                "installed": agent.installed, "login": agent.auth.hint.as_ref().map(line),
            }))
        });
        Ok(CallToolResult::structured(json!({"agents": rows.collect::<Value>()})))
    }

    /// Sessions of this directory, the last used first.
    #[tool(annotations(read_only_hint = true))]
    async fn list_sessions(
        &self,
        Parameters(ListArgs { everywhere }): Parameters<ListArgs>,
    ) -> Result<CallToolResult, Failure> {
        let own = self.own_session().await?;
        let cwd = if everywhere { None } else { Some(folder(own.as_ref())?) };
        let params = SessionListParams { cwd, ..SessionListParams::default() };
        let list: SessionList = self.daemon.ask(method::SESSION_LIST, params).await?;
        let mine = own.as_ref().map(SessionInfo::row_key);
        let others = list.sessions.iter().filter(|one| Some(one.row_key()) != mine);
        let rows = others.take(LISTED).map(|session| {
            let ticket = (session.prompts > 0).then(|| last_ticket(session).to_string());
            // The age is in seconds since the last use.
            row(json!({
                "name": session.name.as_ref().map(line), "sessionId": line(&session.session_id),
                "agent": line(&session.agent), "cwd": line(&session.cwd),
                "title": session.title.as_ref().map(line), "turn": session.turn.state,
                "last": session.turn.last.as_ref().map(line), "prompts": session.prompts,
                "age": age(session.updated), "ticket": ticket,
                "yours": mine.is_some() && session.parent == mine,
            }))
        });
        let rows: Vec<Value> = rows.collect();
        let left_out = list.sessions.len().saturating_sub(rows.len() + usize::from(own.is_some()));
        Ok(CallToolResult::structured(json!({"sessions": rows, "leftOut": left_out})))
    }
}

impl Server {
    /// The session that this server is lent to.
    pub(crate) async fn own_session(&self) -> Result<Option<SessionInfo>, Failure> {
        let Some(number) = self.own else { return Ok(None) };
        let own = SessionRef { number: Some(number), ..SessionRef::default() };
        Ok(Some(self.daemon.session(own).await?))
    }

    async fn request(
        &self,
        args: PromptArgs,
        own: Option<SessionInfo>,
    ) -> Result<PromptRequest, Failure> {
        let PromptArgs { session_name: name, prompt, agent, cwd, files, wait, key } = args;
        if prompt.trim().is_empty() {
            return Err(Failure::new("`prompt` is empty"));
        }
        if prompt.len() > PROMPT || files.len() > FILES {
            let text = format!("a prompt has at most {PROMPT} bytes and {FILES} files");
            return Err(Failure::new(text).hint("write the rest into a file, and name that"));
        }
        let base = folder(own.as_ref())?;
        let cwd = match cwd {
            Some(cwd) => directory(&Path::new(&base).join(cwd))?,
            None => base,
        };
        let known = SessionRef {
            session: name.clone(),
            agent: agent.clone(),
            cwd: Some(cwd.clone()),
            exact_name: true,
            ..SessionRef::default()
        };
        let known = match self.daemon.session(known).await {
            Ok(known) => Some(known),
            Err(Failure { reason: Some(Reason::SessionNotFound), .. }) => None,
            Err(failure) => return Err(failure),
        };
        if known.is_none() && self.own.is_none() && is_marked() {
            return Err(Failure::new("acpd does not know which session this server belongs to, so \
                it cannot bound how many an agent begins")
                .hint("have it lent by acpd: `builtin = [\"delegate\"]` in `[mcp.acpd]` of the configuration"));
        }
        let mut blocks = vec![json!(acp::ContentBlock::Text { text: prompt })];
        for file in files {
            blocks.push(link(&Path::new(&cwd).join(file))?);
        }
        let own = self.own.zip(own);
        Ok(PromptRequest { known, agent, name, cwd, blocks, own, waits: wait, key })
    }

    async fn begin(&self, request: PromptRequest) -> Result<SentPrompt, Failure> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let error = format!("{AT_ONCE} turns run at the same time already");
            return Err(Failure::new(error).hint("wait for one of them"));
        };
        let (daemon, turns) = (self.daemon.clone(), Arc::clone(&self.turns));
        // Sent even if the host no longer waits for it.
        run_blocking(move || {
            let (ticket, running) = RunningTurn::begin(&daemon, request, place)?;
            if let Some(running) = &running {
                let mut turns = locked(&turns);
                turns.retain(|_, turn| !turn.is_over());
                turns.insert(ticket.clone(), Arc::clone(running));
            }
            Ok((ticket, running))
        })
        .await
    }

    /// Reads a ticket, or returns the last turn of the session with this name.
    pub(crate) async fn ticket(&self, text: &str) -> Result<Ticket, Failure> {
        if let Some(ticket) = Ticket::parse(text) {
            return Ok(ticket);
        }
        let cwd = folder(self.own_session().await?.as_ref())?;
        let named = SessionRef {
            session: text.to_owned(),
            cwd: Some(cwd),
            exact_name: true,
            ..SessionRef::default()
        };
        let session = match self.daemon.session(named.clone()).await {
            Err(Failure { reason: Some(Reason::SessionNotFound), .. }) => {
                let session =
                    self.daemon.session(SessionRef { exact_name: false, ..named }).await?;
                if session.session_id != *text {
                    return Err(Failure::new(format!("there is no session `{text}` here"))
                        .hint("`list_sessions` has names, ids and tickets"));
                }
                session
            }
            session => session?,
        };
        let ticket = last_ticket(&session);
        // The turn of a prompt that was just sent may not have begun.
        let next = Ticket { turn: ticket.turn + 1, ..ticket.clone() };
        let is_sent = self.turns().contains_key(&next);
        Ok(if is_sent { next } else { ticket })
    }

    /// A running turn whose prompt this process has sent.
    fn own_turn(&self, ticket: &Ticket) -> Result<Arc<RunningTurn>, Failure> {
        let sent = self.turns().get(ticket).cloned();
        sent.filter(|turn| !turn.is_over()).ok_or_else(|| {
            Failure::new("no turn runs that you have begun with this ticket").hint(
                "`result` tells how it stands; what others have begun, only they and people can end",
            )
        })
    }

    /// Waits until a turn is over or has a question that this agent may answer, and reports
    /// progress. Fails if the host cancels the call.
    async fn until_over(
        &self,
        ticket: &Ticket,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), Failure> {
        let sent = self.turns().get(ticket).cloned();
        let over = async {
            match sent {
                Some(turn) => self.follow(&turn, context).await,
                None => self.wait_for_foreign_turn(ticket).await?,
            }
            Ok::<(), Failure>(())
        };
        tokio::select! {
            over = over => over,
            () = context.ct.cancelled() => Err(Failure::new("the call was cancelled")),
        }
    }

    async fn follow(&self, turn: &RunningTurn, context: &RequestContext<RoleServer>) {
        let mut teller = Teller::new(context, turn);
        tokio::select! {
            () = turn.is_answered() => {}
            () = self.is_asked(turn), if self.answers => return,
            () = teller.follow() => {}
        }
        teller.tell().await;
    }

    async fn is_asked(&self, turn: &RunningTurn) {
        let mut news = turn.news();
        loop {
            if turn.waits() {
                // Without the daemon no question is open.
                let open = self.daemon.questions(&turn.session).await.unwrap_or_default();
                if open.iter().any(|open| ToAnswer::of(open).is_some()) {
                    return;
                }
            }
            // The turn has the sender, so this does not fail.
            drop(news.changed().await);
        }
    }

    /// Waits for the end of a turn that another client or an earlier server began.
    async fn wait_for_foreign_turn(&self, ticket: &Ticket) -> Result<(), Failure> {
        let session = self.session_of(ticket).await?;
        if is_known_over(&session, ticket.turn) {
            return Ok(());
        }
        let Ok(_place) = self.followed.try_acquire() else {
            let error =
                format!("{AT_ONCE} turns of others are waited for at the same time already");
            return Err(Failure::new(error).hint("wait for one of them"));
        };
        let (daemon, turn) = (self.daemon.clone(), ticket.turn);
        let (mut connection, session) = run_blocking(move || {
            let mut connection = daemon.follow(Some(session.agent.raw().to_owned()), None)?;
            let attached = connection.attach(session.exactly(), Role::Observer);
            let session = attached.inspect_err(|_| connection.writer.end())?;
            Ok((connection, session))
        })
        .await?;
        // A cancelled call ends the thread, too.
        let _end = EndOnDrop(connection.writer.clone());
        run_blocking(move || wait_until_over(&mut connection, &session, turn)).await
    }

    pub(crate) async fn session_of(&self, ticket: &Ticket) -> Result<SessionInfo, Failure> {
        self.daemon.session(SessionRef::to(&ticket.agent, &ticket.session)).await
    }

    /// Reports the outcome of a turn, or its present state.
    async fn report(&self, ticket: &Ticket) -> Result<Report, Failure> {
        let sent = self.turns().get(ticket).cloned();
        let end = sent.as_ref().and_then(|turn| turn.news().borrow().clone());
        let session = match (self.session_of(ticket).await, &sent) {
            (Ok(session), _) => session,
            // The daemon is away, but the outcome is known.
            (Err(_), Some(turn)) if end.is_some() => turn.session.clone(),
            (Err(failure), _) => return Err(failure),
        };
        match (sent, end) {
            (Some(turn), None) => {
                let report = {
                    let state = turn.state();
                    Report::new(&session, ticket, state.turns().last())
                };
                let questions = self.daemon.questions(&session).await?;
                Ok(report.asking(&questions, self.answers))
            }
            (Some(turn), Some(end)) => {
                let state = turn.state();
                let of_it = |turn: &&Turn| turn.started.is_some_and(|s| s.turn == ticket.turn);
                let found = state.turns().iter().find(of_it);
                let mut report = Report::new(&session, ticket, found);
                match end {
                    PromptOutcome::Answered if found.is_none() => {
                        report.status = Status::Cancelled;
                        report
                            .notes
                            .push("the prompt was taken back before its turn began".to_owned());
                    }
                    PromptOutcome::Answered => {}
                    PromptOutcome::Busy(failure) => return Err(failure),
                    PromptOutcome::Failed(failure) if found.is_none() => return Err(failure),
                    PromptOutcome::Failed(failure) => report.notes.push(failure.text()),
                    PromptOutcome::Unknown(failure) => {
                        report.status = Status::Unknown;
                        report.notes.push(failure.text());
                        report.notes.push(
                            "it is not known how far the turn came; ask `result` later, and do \
                             not send the prompt again before you know"
                                .to_owned(),
                        );
                    }
                }
                Ok(report)
            }
            (None, _) if session.prompts < ticket.turn => {
                let queued = session.queued > 0;
                let mut report = Report::new(&session, ticket, None);
                if !queued {
                    report.status = Status::Unknown;
                    report.notes.push("the turn never began".to_owned());
                }
                Ok(report)
            }
            (None, _) => {
                let turn = self.daemon.turn(session.clone(), ticket.turn).await?;
                let report = Report::new(&session, ticket, Some(&turn));
                let questions = self.daemon.questions(&session).await?;
                // Only the connection that has sent the prompt may answer.
                Ok(report.asking(&questions, false))
            }
        }
    }
}
