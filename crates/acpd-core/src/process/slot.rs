//! A process slot. The diagram of its states is in [`crate::process`].

use std::collections::{BTreeMap, VecDeque};

use acp_wire::Version;
use acp_wire::acp::{AgentCapabilities, AuthMethod, Implementation, InitializeResult};
use acp_wire::dialect::Translator;
use acpd_api::{AgentState, Reason};
use bytes::Bytes;

use crate::cx::Cx;
use crate::ids::{HostId, Requester, SessionKey, Time};
use crate::input::StopStep;
use crate::profile::Profile;
use crate::record::{Adoption, AgentRow, HostState, NewSession, Record, RowId};

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(super) profile: String,
    /// The only session of this slot, for profiles that do not share a process.
    pub(crate) dedicated: Option<SessionKey>,
    pub(crate) state: State,
    pub(crate) since: Time,
    pub(crate) reason: Option<String>,
    /// Last lines of the last failed run.
    pub(super) stderr: String,
    /// First output of a starting process that was no message.
    pub(super) printed: Option<String>,
    /// Only [`crate::process::table::Processes`] sets this, because it has an index.
    pub(super) host: Option<Host>,
    pub(super) start_hint: Option<String>,
    pub(super) failures: Failures,
    /// Client extensions that the process got, see [`crate::offer`].
    pub(crate) client_meta: Option<String>,
    /// The process was restarted for fresh credentials, and no prompt has succeeded since.
    pub(super) renewed: bool,
    /// Reason of the end of a process that could not be started.
    pub(super) ended: Option<StopWhy>,
    pub(crate) waiting: Vec<Waiting>,
    pub(super) watchers: Vec<Requester>,
    pub(super) parked: BTreeMap<String, Parked>,
    /// Place of the last parked line.
    pub(super) last_parked: u64,
}

#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Failures since the last run that was ready for long enough.
    pub(super) in_a_row: u32,
    /// Time of the restart after the last one.
    pub(super) due: Time,
}

/// Lines about a session that the agent has not named yet, while a `session/new`, an adoption or a
/// restore by `session/new` is open.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    pub(crate) lines: Vec<Bytes>,
    /// Of all lines that came.
    places: Vec<u64>,
    pub(crate) bytes: usize,
    /// Some lines were skipped.
    pub(crate) is_cut: bool,
}

impl Parked {
    pub(crate) fn push(&mut self, place: u64, line: Bytes) {
        self.bytes += line.len();
        self.lines.push(line);
        self.places.push(place);
    }

    pub(super) fn delete(&self, cx: &mut Cx, host: HostId) {
        self.places.iter().for_each(|place| cx.delete(RowId::Parked(host, *place)));
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Stopped,
    /// Waits for a place to start; see [`crate::process::start`].
    Queued,
    Starting,
    Initializing,
    NeedsAuth,
    Ready,
    Stopping {
        why: StopWhy,
        /// Last step of the ladder; `None` while turns are being cancelled.
        step: Option<StopStep>,
    },
    Backoff,
    Failed(Reason),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopWhy {
    /// The leader ended by itself.
    Crashed,
    /// The process never became ready.
    BadStart {
        reason: Reason,
        permanent: bool,
    },
    ByPerson,
    Restart,
    Idle,
    /// The process ignored a cancel.
    Wedged,
    /// The process does not start without a login.
    NoLogin,
    /// acpd can no longer reach a process of an earlier daemon.
    Lost,
}

#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) pid: Option<u32>,
    pub(super) start: u64,
    /// acpd can talk to the process; `false` before the takeover from an earlier daemon.
    pub(super) reachable: bool,
    /// Taking over has taken longer than a start may.
    pub(super) overdue: bool,
    /// The committed output.
    pub(super) read: OutputEnd,
    /// End of the output from the time without a daemon; `None` once acpd has read it.
    pub(super) catch_up: Option<u64>,
    /// acpd could not take over the process: [`crate::input::HostEvent::Lost`].
    pub(super) lost: bool,
    /// Busy state in the last [`crate::input::ToHost::Lease`].
    pub(super) leased: Option<bool>,
    pub(super) made: Option<Time>,
    pub(super) ready_since: Option<Time>,
    pub(crate) stale_from: Option<Time>,
    /// End of the leader, which ends the run even if descendants remain.
    pub(super) exited: Option<Time>,
    pub(super) login: LoginRepeat,
    pub(super) kills: u32,
    pub(super) leftovers: Option<String>,
    pub(crate) outbox: Outbox,
    pub(crate) version: Version,
    /// For an agent that does not speak version 1.
    pub(super) translator: Option<Box<Translator>>,
    /// It has refused an `initialize` for version 2.
    pub(super) refused_2: bool,
}

impl Host {
    pub(crate) fn new(id: HostId) -> Host {
        Host { id, reachable: true, ..Host::default() }
    }

    pub(super) fn recovered(state: &HostState) -> Host {
        let row = &state.row;
        Host {
            pid: (row.pid != 0).then_some(row.pid),
            start: row.start,
            reachable: false,
            read: OutputEnd { offset: row.offset, inside: row.inside },
            ready_since: row.ready,
            outbox: Outbox::recovered(state),
            version: row.version,
            translator: row.version.translator(),
            ..Host::new(row.host)
        }
    }
}

/// End of the output that was read, possibly inside a line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputEnd {
    pub(crate) offset: u64,
    pub(crate) inside: bool,
}

/// Lines to an agent. `process/table.rs` writes them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last: u64,
    pub(super) written: u64,
    /// Number and length of each line.
    unwritten: VecDeque<(u64, usize)>,
    pub(crate) bytes: usize,
}

impl Outbox {
    pub(crate) fn recovered(state: &HostState) -> Outbox {
        let last = state.outbox.last_key_value().map_or(0, |(chunk, _)| *chunk);
        Outbox {
            last: last.max(state.row.written),
            written: state.row.written,
            unwritten: state.outbox.iter().map(|(chunk, line)| (*chunk, line.len())).collect(),
            bytes: state.outbox.values().map(Bytes::len).sum(),
        }
    }

    pub(crate) fn has(&self, chunk: u64) -> bool {
        self.unwritten.iter().any(|(unwritten, _)| *unwritten == chunk)
    }

    pub(crate) fn len(&self) -> usize {
        self.unwritten.len()
    }

    pub(crate) fn push(&mut self, len: usize) -> u64 {
        self.last += 1;
        self.unwritten.push_back((self.last, len));
        self.bytes += len;
        self.last
    }

    pub(super) fn take_written(&mut self, cx: &mut Cx, host: HostId, chunk: u64) {
        self.written = chunk;
        while let Some((line, len)) = self.unwritten.pop_front_if(|(line, _)| *line <= chunk) {
            self.bytes -= len;
            cx.record_later(Record::Delete(RowId::Outbox(host, line)));
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LoginRepeat {
    #[default]
    Untried,
    Asked,
    Over,
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) to: Requester,
    pub(crate) what: WaitFor,
    pub(crate) directory: Directory,
}

impl Waiting {
    pub(crate) fn new(to: Requester, what: WaitFor) -> Waiting {
        Waiting { to, what, directory: Directory::Unknown }
    }
}

/// Check of the directory of a session to be made or adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directory {
    Unknown,
    Asked(u64),
    There,
}

#[derive(Debug)]
pub(crate) enum WaitFor {
    Initialize,
    New(NewSession),
    Adopt(Adoption),
    /// A request that is about no session: method and the complete line.
    Relay {
        method: String,
        line: Bytes,
    },
}

/// An agent's row, and its parsed `initialize` result.
#[derive(Debug, Default)]
pub(crate) struct AgentInfo {
    pub(crate) row: AgentRow,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) info: Option<Implementation>,
    pub(crate) methods: Vec<AuthMethod>,
    /// The agent advertised `session/list`, but answered "method not found".
    pub(crate) list_lies: bool,
    /// Restarts after unexpected exits, since the daemon started.
    pub(crate) restarts: u32,
    /// Mode of the agent's last new session, if the configuration sets none.
    pub(crate) begins_in: Option<String>,
}

impl AgentInfo {
    pub(crate) fn new(row: AgentRow) -> AgentInfo {
        let parsed = row.initialize.as_ref().and_then(|raw| {
            let raw = serde_json::from_slice(raw).ok()?;
            InitializeResult::from_raw(raw).ok()
        });
        let (capabilities, info, methods) = parsed
            .map(|result| (result.capabilities, result.agent_info, result.auth_methods))
            .unwrap_or_default();
        AgentInfo { row, capabilities, info, methods, ..AgentInfo::default() }
    }

    /// Returns methods that the agent advertised but answered with "method not found".
    pub(crate) fn lies(&self) -> Vec<&'static str> {
        let lies = [
            (self.row.resume_lies, "session/resume"),
            (self.row.load_lies, "session/load"),
            (self.list_lies, "session/list"),
        ];
        lies.into_iter().filter(|(lies, _)| *lies).map(|(_, method)| method).collect()
    }

    pub(crate) fn forget_lies(&mut self) {
        (self.row.resume_lies, self.row.load_lies, self.list_lies) = (false, false, false);
    }

    pub(crate) fn resumes(&self, profile: &Profile) -> bool {
        profile.use_resume && self.capabilities.resume && !self.row.resume_lies
    }

    pub(crate) fn loads(&self, profile: &Profile) -> bool {
        profile.use_load && self.capabilities.load_session && !self.row.load_lies
    }

    pub(crate) fn lists(&self) -> bool {
        self.capabilities.list && !self.list_lies
    }
}

impl Slot {
    pub(super) fn new(profile: String, dedicated: Option<SessionKey>, now: Time) -> Slot {
        Slot { profile, dedicated, since: now, ..Slot::default() }
    }

    pub(crate) fn profile(&self) -> &str {
        &self.profile
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || !self.watchers.is_empty()
    }

    pub(super) fn stop_why(&self) -> Option<&StopWhy> {
        match &self.state {
            State::Stopping { why, .. } => Some(why),
            _ => None,
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop_why().is_some()
    }

    pub(crate) fn is_wedged(&self) -> bool {
        self.stop_why() == Some(&StopWhy::Wedged)
    }

    pub(crate) fn is_crash_loop(&self) -> bool {
        self.state == State::Failed(Reason::AgentCrashLoop)
    }

    pub(super) fn what_it_printed(&self) -> String {
        let printed = self.printed.as_ref();
        printed.map(|line| format!("; it printed `{line}`")).unwrap_or_default()
    }

    pub(crate) fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    pub(super) fn host_mut(&mut self) -> Option<&mut Host> {
        self.host.as_mut()
    }

    pub(crate) fn is_renewed(&self) -> bool {
        self.renewed && self.stop_why() == Some(&StopWhy::Restart)
    }

    /// Returns whether acpd is repeating the login, so requests that need it wait.
    pub(crate) fn is_logged_in_again(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.login == LoginRepeat::Asked)
    }

    /// Returns the duration of the start in milliseconds.
    pub(crate) fn start_took(&self) -> u64 {
        let times = self.host.as_ref().and_then(|host| host.ready_since.zip(host.made));
        times.map_or(0, |(ready, made)| ready.since(made))
    }

    /// Returns whether the process has answered `initialize` and can be reached.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Ready | State::NeedsAuth)
            && self.host.as_ref().is_some_and(|host| host.reachable)
    }

    pub(crate) fn usable_host(&self) -> Option<HostId> {
        self.is_up().then_some(self.host.as_ref()?.id)
    }

    pub(crate) fn leftovers(&self) -> Option<&str> {
        self.host.as_ref()?.leftovers.as_deref()
    }

    pub(super) fn forgive(&mut self) {
        self.failures = Failures::default();
    }

    pub(crate) fn api_reason(&self) -> Option<String> {
        self.leftovers().map(str::to_owned).or_else(|| self.reason.clone())
    }

    pub(crate) fn api_state(&self) -> AgentState {
        match self.state {
            State::Stopped => AgentState::Stopped,
            State::Queued | State::Starting => AgentState::Starting,
            State::Initializing => AgentState::Initializing,
            State::NeedsAuth | State::Failed(Reason::NeedsLogin) => AgentState::NeedsAuth,
            State::Ready => AgentState::Ready,
            State::Stopping { .. } => AgentState::Stopping,
            State::Backoff => AgentState::Backoff,
            State::Failed(_) => AgentState::Failed,
        }
    }
}

/// Time between two SIGKILLs (ms).
pub(crate) const KILL_AGAIN: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The user's start or prompt: clears a crash loop and a back-off.
    Person,
    /// acpd itself: obeys back-off and restart limits.
    Policy,
}

impl WaitFor {
    pub(crate) fn cwd(&self) -> Option<&str> {
        match self {
            WaitFor::New(new) => Some(&new.cwd),
            WaitFor::Adopt(adoption) => Some(&adoption.cwd),
            WaitFor::Initialize | WaitFor::Relay { .. } => None,
        }
    }
}
