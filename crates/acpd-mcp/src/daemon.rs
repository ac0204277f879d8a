//! Requests to the daemon, each on a connection of its own, and connections that follow a session.

use acp_wire::{Message, parse};
use acpd_api::{
    ClientMeta, Empty, InteractionInfo, InteractionList, LogParams, LogResult, SessionInfo,
    SessionRef, TurnState, method,
};
use acpd_client::{Connection, LinkEvent, LinkWriter, Options, PATIENCE, connect, connect_lasting};
use acpd_view::{State, Turn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::failure::Failure;
use crate::ticket::Ticket;

/// Entries of the journal that are read first when a turn is searched from the end.
const WINDOW: u64 = 2_000;
/// Entries per page.
const PAGE: u32 = 1_000;
const NAME: &str = "acpctl mcp";
/// Notices that may end a turn.
const CHANGES: [&str; 4] =
    [method::TURN_STARTED, method::TURN_ENDED, method::SESSION_STATE, method::SESSION_REMOVED];

#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    pub(crate) options: Options,
}

impl Daemon {
    /// Opens a connection that outlives the daemon's process, bound to this agent, or to that of
    /// the directory.
    pub(crate) fn follow(
        &self,
        agent: Option<String>,
        cwd: Option<String>,
    ) -> Result<Connection, Failure> {
        let mut connection = connect_lasting(&self.options, PATIENCE)?;
        let meta = ClientMeta {
            cwd,
            agent,
            notices: true,
            seq: true,
            tool: true,
            ..ClientMeta::default()
        };
        connection.initialize(&meta, NAME)?;
        Ok(connection)
    }

    /// Sends a request on a blocking thread.
    pub(crate) async fn ask<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + 'static,
    ) -> Result<R, Failure> {
        let daemon = self.clone();
        run_blocking(move || daemon.call(method, &params)).await
    }

    /// Like [`ask`](Daemon::ask), for a blocking thread.
    pub(crate) fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        Ok(connect(&self.options)?.call(method, params)?)
    }

    pub(crate) async fn session(&self, wanted: SessionRef) -> Result<SessionInfo, Failure> {
        self.ask(method::SESSION_SHOW, wanted).await
    }

    pub(crate) async fn questions(
        &self,
        session: &SessionInfo,
    ) -> Result<Vec<InteractionInfo>, Failure> {
        let mut list: InteractionList = self.ask(method::INTERACTION_LIST, Empty {}).await?;
        list.interactions.retain(|one| one.is_of(&session.agent, &session.session_id));
        Ok(list.interactions)
    }

    pub(crate) async fn turn(&self, session: SessionInfo, number: u64) -> Result<Turn, Failure> {
        let daemon = self.clone();
        run_blocking(move || daemon.read_turn(&session, number)).await
    }

    fn read_turn(&self, session: &SessionInfo, number: u64) -> Result<Turn, Failure> {
        let none = || Failure::new(format!("there is no turn {number} in that session"));
        if !(1..=session.prompts).contains(&number) {
            return Err(none());
        }
        let mut window = WINDOW;
        loop {
            let after = session.seq.saturating_sub(window);
            let mut state = State::new(&session.session_id).within(&session.cwd);
            let asked = LogParams::after(session.exactly(), after).with_originals();
            connect(&self.options)?.read_log(asked, |page| {
                for entry in &page.entries {
                    state.fold_entry(entry.seq, entry.line.get());
                }
                Ok::<(), Failure>(())
            })?;
            let found = state
                .into_turns()
                .into_iter()
                .find(|turn| turn.started.is_some_and(|started| started.turn == number));
            match found {
                Some(turn) => return Ok(turn),
                None if after > 0 => window = window.saturating_mul(4),
                None => return Err(none()),
            }
        }
    }

    /// A page of entries behind a line of the journal, and where the next one begins.
    pub(crate) fn page(
        &self,
        session: &SessionInfo,
        after: u64,
    ) -> Result<(State, Option<u64>), Failure> {
        let asked = LogParams::after(session.exactly(), after).with_originals();
        let params = LogParams { limit: Some(PAGE), ..asked };
        let page: LogResult = self.call(method::SESSION_LOG, &params)?;
        let mut state = State::new(&session.session_id).within(&session.cwd);
        for entry in &page.entries {
            state.fold_entry(entry.seq, entry.line.get());
        }
        Ok((state, page.next.map(|last| last + 1)))
    }
}

/// Ends its connection when it is dropped.
#[derive(Debug)]
pub(crate) struct EndOnDrop(pub(crate) LinkWriter);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Waits for the end of a turn of the attached session.
pub(crate) fn wait_until_over(
    connection: &mut Connection,
    session: &SessionInfo,
    turn: u64,
) -> Result<(), Failure> {
    let is_change = |event: LinkEvent| match event {
        LinkEvent::Line(line) => matches!(parse(&line),
            Ok(Message::Notification { method, .. }) if CHANGES.contains(&&*method)),
        // Notices without a line in the journal may have been lost.
        LinkEvent::Resumed => true,
        _ => false,
    };
    loop {
        let now = connection.call(method::SESSION_SHOW, &session.exactly())?;
        if is_known_over(&now, turn) {
            return Ok(());
        }
        while !is_change(connection.reader.recv()?) {}
    }
}

pub(crate) async fn run_blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(Failure::new(error.to_string())))
}

/// Returns whether the session has neither a running turn nor queued prompts.
pub(crate) fn is_idle(session: &SessionInfo) -> bool {
    session.turn.state == TurnState::Idle && session.queued == 0
}

/// Returns whether the turn is over, or can no longer begin.
pub(crate) fn is_known_over(session: &SessionInfo, turn: u64) -> bool {
    let rests = session.turn.state == TurnState::Idle;
    session.prompts > turn || rests && (session.prompts == turn || session.queued == 0)
}

pub(crate) fn last_ticket(session: &SessionInfo) -> Ticket {
    Ticket {
        turn: session.prompts,
        agent: session.agent.raw().to_owned(),
        session: session.session_id.raw().to_owned(),
    }
}
