//! All sessions, agents and open questions, and the rows of `top`.

use std::cmp::Reverse;

use acpd_api::{
    AgentInfo, AgentState, InteractionInfo, SessionInfo, SessionRowKey, SessionState, TurnState,
    Untrusted, Watched,
};
use acpd_view::text::Text;

/// An interrupted turn needs the user for a day.
const INTERRUPTED_FOR_MS: u64 = 24 * 60 * 60 * 1000;
const SILENT_AFTER_MS: u64 = 2 * 60 * 1000;

const ID_WIDTH: usize = 12;

/// The content of `_acpd/watch`.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) watched: Watched,
    /// The first rows have come.
    pub(crate) is_known: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowKey {
    Question(Untrusted),
    Session(SessionRowKey),
    /// The agent that needs a login.
    Login(Untrusted),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    NeedsYou,
    Working,
    /// All others, the last used first.
    Recent,
}

#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub(crate) section: Section,
    pub(crate) what: RowState<'a>,
    pub(crate) session: Option<&'a SessionInfo>,
    /// In ms since the epoch.
    pub(crate) since: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RowState<'a> {
    Question(&'a InteractionInfo),
    /// The number of sessions that wait for the agent's login.
    Login(&'a AgentInfo, usize),
    Interrupted,
    /// The session waits for an action of the user.
    Blocked,
    /// A turn runs or is queued.
    Works {
        /// Time in ms without output, if it is long.
        silent: Option<u64>,
    },
    Rests,
}

impl Row<'_> {
    pub(crate) fn key(&self) -> Option<RowKey> {
        match (self.what, self.session) {
            (RowState::Question(question), _) => Some(RowKey::Question(question.id.clone())),
            (RowState::Login(agent, _), _) => Some(RowKey::Login(agent.name.clone())),
            (_, session) => session.map(|session| RowKey::Session(session.row_key())),
        }
    }

    pub(crate) fn question(&self) -> Option<&InteractionInfo> {
        match self.what {
            RowState::Question(question) => Some(question),
            _ => None,
        }
    }
}

impl Fleet {
    pub(crate) fn question(&self, id: &Untrusted) -> Option<&InteractionInfo> {
        self.watched.interactions.iter().find(|question| question.id == *id)
    }

    /// The oldest first.
    pub(crate) fn questions_of<'a>(
        &'a self,
        key: &'a SessionRowKey,
    ) -> impl Iterator<Item = &'a InteractionInfo> {
        let is_of = |question: &&InteractionInfo| question.is_of(&key.agent, &key.session_id);
        self.watched.interactions.iter().filter(is_of)
    }

    pub(crate) fn session(&self, key: &SessionRowKey) -> Option<&SessionInfo> {
        self.watched.sessions.iter().find(|session| key.is_of(session))
    }

    pub(crate) fn turns_of(&self, agent: &Untrusted) -> usize {
        let is_busy = |session: &&SessionInfo| {
            session.agent == *agent && session.turn.state != TurnState::Idle
        };
        self.watched.sessions.iter().filter(is_busy).count()
    }

    pub(crate) fn rows(&self, words: &str, now: u64) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> =
            self.watched.interactions.iter().map(|q| self.asked(q)).collect();
        let logins = self.watched.agents.iter().filter(|agent| wants_login(agent));
        rows.extend(logins.map(|agent| self.login(agent)));
        rows.extend(self.watched.sessions.iter().filter_map(|session| self.row(session, now)));
        if !words.trim().is_empty() {
            rows.retain(|row| fits(row, words));
        }
        rows.sort_by_key(|row| match row.what {
            // The oldest first.
            RowState::Question(_) => (row.section, 0, row.since, Reverse(0)),
            RowState::Interrupted | RowState::Blocked => (row.section, 1, row.since, Reverse(0)),
            RowState::Login(..) => (row.section, 2, row.since, Reverse(0)),
            // The last started first. The order is stable while turns run.
            RowState::Works { silent: None } => (row.section, 0, 0, Reverse(row.since)),
            RowState::Works { silent: Some(_) } => (row.section, 1, 0, Reverse(row.since)),
            RowState::Rests => (row.section, 0, 0, Reverse(row.since)),
        });
        rows
    }

    /// Returns the time in ms after which a visible age changes.
    pub(crate) fn pace(&self, now: u64) -> u64 {
        const MINUTE: u64 = 60_000;
        let began = |session: &SessionInfo| session.turn.since.max(session.updated);
        let asked = self.watched.interactions.iter().map(|question| question.at);
        let mut times = self.watched.sessions.iter().map(began).chain(asked);
        if times.any(|at| now.saturating_sub(at) < MINUTE) { 1000 } else { MINUTE }
    }

    fn asked<'a>(&'a self, question: &'a InteractionInfo) -> Row<'a> {
        let is_its = |s: &&SessionInfo| question.is_of(&s.agent, &s.session_id);
        let session = self.watched.sessions.iter().find(is_its);
        let what = RowState::Question(question);
        Row { section: Section::NeedsYou, what, session, since: question.at }
    }

    fn login<'a>(&'a self, agent: &'a AgentInfo) -> Row<'a> {
        let waits = |s: &&SessionInfo| s.agent == agent.name && s.state == SessionState::Blocked;
        let what = RowState::Login(agent, self.watched.sessions.iter().filter(waits).count());
        let since = if agent.auth.since > 0 { agent.auth.since } else { agent.since };
        Row { section: Section::NeedsYou, what, session: None, since }
    }

    /// Returns none for a session whose question has a row.
    fn row<'a>(&'a self, session: &'a SessionInfo, now: u64) -> Option<Row<'a>> {
        let asks = |question: &InteractionInfo| question.is_of(&session.agent, &session.session_id);
        let turn = &session.turn;
        let is_busy = turn.state != TurnState::Idle
            || session.queued > 0
            || !session.background.is_empty()
            || session.limited_until.is_some()
            || session.state == SessionState::Restoring;
        let was_interrupted = turn.last.as_ref().is_some_and(|last| {
            matches!(last.raw(), "interrupted" | "outcome_unknown" | "unwedged")
        });
        let is_login =
            || self.watched.agents.iter().any(|a| a.name == session.agent && wants_login(a));
        let (section, what, since) = if self.watched.interactions.iter().any(asks) {
            return None;
        } else if session.state == SessionState::Blocked && !is_login() {
            (Section::NeedsYou, RowState::Blocked, session.updated)
        } else if is_busy {
            let last = session.last_line.unwrap_or(0).max(turn.since);
            let silent = now.saturating_sub(last);
            let is_silent = turn.state == TurnState::Working && silent >= SILENT_AFTER_MS;
            let what = RowState::Works { silent: is_silent.then_some(silent) };
            (Section::Working, what, turn.since)
        } else if was_interrupted && now.saturating_sub(session.updated) < INTERRUPTED_FOR_MS {
            (Section::NeedsYou, RowState::Interrupted, session.updated)
        } else {
            (Section::Recent, RowState::Rests, session.updated)
        };
        Some(Row { section, what, session: Some(session), since })
    }
}

fn wants_login(agent: &AgentInfo) -> bool {
    agent.state == AgentState::NeedsAuth || agent.auth.state.wants_login()
}

/// Returns whether every word is in a name, title, agent, directory or id.
fn fits(row: &Row<'_>, words: &str) -> bool {
    let mut facts: Vec<&Untrusted> = Vec::new();
    if let Some(session) = row.session {
        facts.extend([&session.session_id, &session.agent, &session.cwd]);
        facts.extend(session.name.iter().chain(&session.title));
    }
    match row.what {
        RowState::Question(question) => facts.push(&question.agent),
        RowState::Login(agent, _) => facts.push(&agent.name),
        _ => {}
    }
    let facts: Vec<String> = facts.iter().map(|fact| fact.raw().to_lowercase()).collect();
    let is_in = |word: &str| facts.iter().any(|fact| fact.contains(&word.to_lowercase()));
    words.split_whitespace().all(is_in)
}

pub(crate) fn shown(session: &SessionInfo) -> Text {
    match &session.name {
        Some(name) => name.into(),
        None => short(&session.session_id),
    }
}

pub(crate) fn short(id: &Untrusted) -> Text {
    Text::from(id).cut(ID_WIDTH)
}
