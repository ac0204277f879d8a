//! All sessions, agents and open questions, as `_acpd/watch` tells them, and the rows of `top`.

use std::cmp::Reverse;

use acpd_api::{
    AgentInfo, AgentState, Changed, InteractionInfo, SessionInfo, SessionRowKey, SessionState,
    TurnState, Untrusted, Watched,
};
use acpd_view::text::Text;

/// An interrupted turn asks for somebody for a day. Who has not come until then knows, or does not care.
const INTERRUPTED_FOR: u64 = 24 * 60 * 60 * 1000;
/// An agent that has said nothing for so long in a turn is silent.
const SILENT_AFTER: u64 = 2 * 60 * 1000;

/// Columns of an id that nobody has given a name.
const ID: usize = 12;

/// What is known of everything.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    told: Option<Watched>,
}

/// What a row is about; stays the same while its contents change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// A question, by its id.
    Question(Untrusted),
    Session(SessionRowKey),
    /// An agent that wants a login.
    Login(Untrusted),
}

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    /// An agent cannot continue without a person.
    NeedsYou,
    Working,
    /// The rest, the last used first.
    Recent,
}

/// A row of `top`.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub(crate) section: Section,
    /// Why it stands there.
    pub(crate) what: What<'a>,
    /// The session, unless acpd knows none.
    pub(crate) session: Option<&'a SessionInfo>,
    /// Since when it is so (ms since the epoch).
    pub(crate) since: u64,
}

/// What a row says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What<'a> {
    Question(&'a InteractionInfo),
    /// An agent wants a login; so many of its sessions wait for that.
    Login(&'a AgentInfo, usize),
    /// The last turn was interrupted.
    Interrupted,
    /// The session waits for something that a person must do.
    Blocked,
    /// A turn runs or waits. The agent may be silent for long.
    Works {
        /// For how long (ms), if it is too long.
        silent: Option<u64>,
    },
    Rests,
}

impl Row<'_> {
    /// What the row is about.
    pub(crate) fn key(&self) -> Option<RowKey> {
        match (self.what, self.session) {
            (What::Question(question), _) => Some(RowKey::Question(question.id.clone())),
            (What::Login(agent, _), _) => Some(RowKey::Login(agent.name.clone())),
            (_, session) => session.map(|session| RowKey::Session(session.row_key())),
        }
    }

    /// The open question of the row.
    pub(crate) fn question(&self) -> Option<&InteractionInfo> {
        match self.what {
            What::Question(question) => Some(question),
            _ => None,
        }
    }
}

impl Fleet {
    pub(crate) fn snapshot(&mut self, told: Watched) {
        self.told = Some(told);
    }

    /// Takes rows that changed.
    pub(crate) fn changed(&mut self, changed: Changed) {
        if let Some(told) = &mut self.told {
            told.apply(changed);
        }
    }

    /// Whether anything was told yet.
    pub(crate) fn is_known(&self) -> bool {
        self.told.is_some()
    }

    /// Everything that was told.
    fn sessions(&self) -> &[SessionInfo] {
        self.told.as_ref().map_or(&[], |told| &told.sessions)
    }

    pub(crate) fn agents(&self) -> &[AgentInfo] {
        self.told.as_ref().map_or(&[], |told| &told.agents)
    }

    /// All open questions, the oldest first.
    pub(crate) fn questions(&self) -> &[InteractionInfo] {
        self.told.as_ref().map_or(&[], |told| &told.interactions)
    }

    /// A question by its id.
    pub(crate) fn question(&self, id: &Untrusted) -> Option<&InteractionInfo> {
        self.questions().iter().find(|question| question.id == *id)
    }

    /// The open questions of a session, the oldest first.
    pub(crate) fn questions_of<'a>(
        &'a self,
        key: &'a SessionRowKey,
    ) -> impl Iterator<Item = &'a InteractionInfo> {
        self.questions().iter().filter(|question| {
            question.agent == key.agent && question.session_id.as_ref() == Some(&key.session_id)
        })
    }

    /// A session by its key.
    pub(crate) fn session(&self, key: &SessionRowKey) -> Option<&SessionInfo> {
        self.sessions().iter().find(|session| is_of(session, &key.agent, &key.session_id))
    }

    /// How many turns of an agent run or wait for somebody.
    pub(crate) fn turns_of(&self, agent: &Untrusted) -> usize {
        let is_busy = |session: &&SessionInfo| {
            session.agent == *agent && session.turn.state != TurnState::Idle
        };
        self.sessions().iter().filter(is_busy).count()
    }

    /// The rows that fit these words, in the order of the screen.
    pub(crate) fn rows(&self, words: &str, now: u64) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = self.questions().iter().map(|q| self.asked(q)).collect();
        let logins = self.agents().iter().filter(|agent| wants_login(agent));
        rows.extend(logins.map(|agent| self.login(agent)));
        rows.extend(self.sessions().iter().filter_map(|session| self.row(session, now)));
        if !words.trim().is_empty() {
            rows.retain(|row| fits(row, words));
        }
        rows.sort_by_key(|row| match row.what {
            // The oldest first.
            What::Question(_) => (row.section, 0, row.since, Reverse(0)),
            What::Interrupted | What::Blocked => (row.section, 1, row.since, Reverse(0)),
            What::Login(..) => (row.section, 2, row.since, Reverse(0)),
            // What began last is looked for first; the order stays as it is while a turn runs.
            What::Works { silent: None } => (row.section, 0, 0, Reverse(row.since)),
            What::Works { silent: Some(_) } => (row.section, 1, 0, Reverse(row.since)),
            What::Rests => (row.section, 0, 0, Reverse(row.since)),
        });
        rows
    }

    /// For how long (ms) the ages on the screen stay as they are, about.
    pub(crate) fn pace(&self, now: u64) -> u64 {
        const MINUTE: u64 = 60_000;
        let began = |session: &SessionInfo| session.turn.since.max(session.updated);
        let asked = self.questions().iter().map(|question| question.at);
        let mut times = self.sessions().iter().map(began).chain(asked);
        if times.any(|at| now.saturating_sub(at) < MINUTE) { 1000 } else { MINUTE }
    }

    fn asked<'a>(&'a self, question: &'a InteractionInfo) -> Row<'a> {
        let session = question.session_id.as_ref();
        let session =
            session.and_then(|id| self.sessions().iter().find(|s| is_of(s, &question.agent, id)));
        let what = What::Question(question);
        Row { section: Section::NeedsYou, what, session, since: question.at }
    }

    fn login<'a>(&'a self, agent: &'a AgentInfo) -> Row<'a> {
        let waits = |s: &&SessionInfo| s.agent == agent.name && s.state == SessionState::Blocked;
        let what = What::Login(agent, self.sessions().iter().filter(waits).count());
        let since = if agent.auth.since > 0 { agent.auth.since } else { agent.since };
        Row { section: Section::NeedsYou, what, session: None, since }
    }

    /// The row of a session; none for one that stands there with its question.
    fn row<'a>(&'a self, session: &'a SessionInfo, now: u64) -> Option<Row<'a>> {
        let asks = |question: &InteractionInfo| {
            question.session_id.as_ref().is_some_and(|id| is_of(session, &question.agent, id))
        };
        let turn = &session.turn;
        let is_busy = turn.state != TurnState::Idle
            || session.queued > 0
            || session.limited_until.is_some()
            || session.state == SessionState::Restoring;
        let was_interrupted = turn.last.as_ref().is_some_and(|last| {
            matches!(last.raw(), "interrupted" | "outcome_unknown" | "unwedged")
        });
        let is_login = || self.agents().iter().any(|a| a.name == session.agent && wants_login(a));
        let (section, what, since) = if self.questions().iter().any(asks) {
            return None;
        } else if session.state == SessionState::Blocked && !is_login() {
            (Section::NeedsYou, What::Blocked, session.updated)
        } else if is_busy {
            let last = session.last_line.unwrap_or(0).max(turn.since);
            let silent = now.saturating_sub(last);
            let is_silent = turn.state == TurnState::Working && silent >= SILENT_AFTER;
            let what = What::Works { silent: is_silent.then_some(silent) };
            (Section::Working, what, turn.since)
        } else if was_interrupted && now.saturating_sub(session.updated) < INTERRUPTED_FOR {
            (Section::NeedsYou, What::Interrupted, session.updated)
        } else {
            (Section::Recent, What::Rests, session.updated)
        };
        Some(Row { section, what, session: Some(session), since })
    }
}

fn is_of(session: &SessionInfo, agent: &Untrusted, id: &Untrusted) -> bool {
    session.session_id == *id && session.agent == *agent
}

fn wants_login(agent: &AgentInfo) -> bool {
    agent.state == AgentState::NeedsAuth || agent.auth.state.wants_login()
}

/// Whether every word is in what a person would look for.
fn fits(row: &Row<'_>, words: &str) -> bool {
    let mut facts: Vec<&Untrusted> = Vec::new();
    if let Some(session) = row.session {
        facts.extend([&session.session_id, &session.agent, &session.cwd]);
        facts.extend(session.name.iter().chain(&session.title));
    }
    match row.what {
        What::Question(question) => facts.push(&question.agent),
        What::Login(agent, _) => facts.push(&agent.name),
        _ => {}
    }
    let facts: Vec<String> = facts.iter().map(|fact| fact.raw().to_lowercase()).collect();
    let is_in = |word: &str| facts.iter().any(|fact| fact.contains(&word.to_lowercase()));
    words.split_whitespace().all(is_in)
}

/// The same on a screen, where the beginning of an id is enough.
pub(crate) fn shown(session: &SessionInfo) -> Text {
    match &session.name {
        Some(name) => name.into(),
        None => short(&session.session_id),
    }
}

/// The beginning of an id.
pub(crate) fn short(id: &Untrusted) -> Text {
    Text::from(id).cut(ID)
}
