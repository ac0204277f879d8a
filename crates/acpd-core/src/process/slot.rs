//! A process slot and what runs in it: states, why and how far it is being stopped, who waits for it. The
//! diagram is in [`crate::process`].

use std::collections::{BTreeMap, VecDeque};

use acp_wire::acp::{AgentCapabilities, AuthMethod, Implementation, InitializeResult};
use acpd_api::{AgentState, Reason};
use bytes::Bytes;

use crate::ids::{HostId, Requester, SessionKey, Time};
use crate::process::outbox::Outbox;
use crate::profile::Profile;
use crate::record::AgentRow;
use crate::record::snapshot::HostState;
use crate::requests::purpose::Directory;

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(super) profile: String,
    /// The only session of this slot, for profiles that do not share a process.
    pub(super) dedicated: Option<SessionKey>,
    pub(super) state: State,
    pub(super) since: Time,
    pub(super) reason: Option<String>,
    /// Last lines of stderr of the last run that failed.
    pub(super) stderr: String,
    /// First output of a starting process that was no message.
    pub(super) printed: Option<String>,
    /// Only [`crate::process::table::Processes`] sets it, which has an index of it.
    host: Option<Host>,
    /// The way out of its last refused start.
    pub(super) start_hint: Option<String>,
    failures: Failures,
    /// Client extensions in the process's `initialize`, see [`crate::offer`].
    pub(super) client_meta: Option<String>,
    /// The process was restarted for fresh credentials, and no prompt has succeeded since.
    pub(super) renewed: bool,
    /// The purpose of the end of a process that could not be made, until that is judged.
    pub(super) ended: Option<StopWhy>,
    /// Requests that wait until the process is usable.
    pub(super) waiting: Vec<Waiting>,
    /// Persons who wait for a start or stop to finish.
    pub(super) watchers: Vec<Requester>,
    /// Lines about sessions that acpd cannot name yet: a `session/new`, an adoption or a restore by
    /// `session/new` is open.
    pub(super) parked: BTreeMap<String, Parked>,
}

/// How often it has failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Since the last run that was ready for long enough.
    pub(crate) in_a_row: u32,
    /// Within the window of the restart rules.
    pub(crate) of_late: u32,
}

#[derive(Debug, Default)]
struct Failures {
    at: VecDeque<Time>,
    in_a_row: u32,
}

/// Lines for a session that is not there yet.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    lines: Vec<Bytes>,
    bytes: usize,
    is_cut: bool,
}

impl Parked {
    pub(crate) fn push(&mut self, line: Bytes) {
        self.bytes += line.len();
        self.lines.push(line);
    }

    /// There is one more, and no room for it.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Takes the lines out. Returns also whether there were more.
    pub(crate) fn take(&mut self) -> (Vec<Bytes>, bool) {
        self.bytes = 0;
        (std::mem::take(&mut self.lines), self.is_cut)
    }

    pub(crate) fn lines(&self) -> &[Bytes] {
        &self.lines
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Stopped,
    /// To be started when there is a place; see [`crate::process::start`].
    Queued,
    Starting,
    Initializing,
    NeedsAuth,
    Ready,
    Stopping {
        why: StopWhy,
        stage: Stage,
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
    /// A person stopped it.
    ByPerson,
    /// A person restarts it.
    Restart,
    Idle,
    /// The process ignored a cancel.
    Wedged,
    /// The process does not start without a login.
    NoLogin,
    /// An earlier daemon started it, and acpd can no longer speak with it.
    Lost,
}

/// How far the stop ladder has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Running turns were cancelled; they may end in peace.
    Cancelling,
    Eof,
    Term,
    Kill,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) pid: Option<u32>,
    pub(super) start: u64,
    /// acpd can talk to it; false for a process of the last daemon until acpd has taken it over.
    pub(super) reachable: bool,
    /// Taking it over takes longer than a start may.
    pub(super) overdue: bool,
    /// Committed output when it was taken over.
    pub(super) offset: u64,
    /// End of what it wrote while no daemon was there; `None` once acpd has read up to there.
    pub(super) catch_up: Option<u64>,
    /// [`crate::input::HostEvent::Lost`] came: acpd could not take it over.
    pub(super) lost: bool,
    /// The last [`crate::input::ToHost::Lease`] that was sent: whether it is busy.
    pub(super) leased: Option<bool>,
    /// When this daemon began to make it.
    pub(super) made: Option<Time>,
    pub(super) ready_since: Option<Time>,
    /// From when on its credentials are too old.
    pub(crate) stale_from: Option<Time>,
    /// When the leader ended, or was given up. What lingers of its tree is no part of its run.
    pub(super) exited: Option<Time>,
    /// Repetition of the last login for this process.
    pub(super) login: LoginRepeat,
    /// How often it was sent SIGKILL.
    pub(super) kills: u32,
    /// Remaining processes, as clients were told.
    pub(super) leftovers: Option<String>,
    pub(crate) outbox: Outbox,
}

impl Host {
    pub(crate) fn new(id: HostId) -> Host {
        Host {
            id,
            pid: None,
            start: 0,
            reachable: true,
            overdue: false,
            offset: 0,
            catch_up: None,
            lost: false,
            leased: None,
            made: None,
            ready_since: None,
            stale_from: None,
            exited: None,
            login: LoginRepeat::Untried,
            kills: 0,
            leftovers: None,
            outbox: Outbox::new(),
        }
    }

    /// A process of the last daemon, not spoken with yet.
    pub(super) fn recovered(state: &HostState) -> Host {
        let row = &state.row;
        Host {
            pid: (row.pid != 0).then_some(row.pid),
            start: row.start,
            reachable: false,
            offset: state.offset,
            ready_since: row.ready,
            outbox: Outbox::recovered(state),
            ..Host::new(row.host)
        }
    }
}

/// How far acpd is with repeating the last login of a profile for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginRepeat {
    Untried,
    Asked,
    Over,
}

/// A client's request that waits for the process.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) to: Requester,
    pub(crate) what: WaitFor,
}

#[derive(Debug)]
pub(crate) enum WaitFor {
    Initialize,
    New(crate::requests::purpose::NewSession),
    Adopt(crate::requests::purpose::Adoption),
    /// A connection-scoped request to relay: method and the complete line.
    Relay {
        method: String,
        line: Bytes,
    },
}

/// A profile's agent: its row on disk, and the `initialize` result parsed from it.
#[derive(Debug)]
pub(crate) struct AgentInfo {
    pub(crate) row: AgentRow,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) info: Option<Implementation>,
    pub(crate) methods: Vec<AuthMethod>,
    /// `session/list` was advertised but answered with "method not found".
    pub(crate) list_lies: bool,
    /// Mode of the last session that it made, where the configuration sets none.
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
        AgentInfo { row, capabilities, info, methods, list_lies: false, begins_in: None }
    }

    /// Methods that it announced and then answered with "method not found": acpd no longer uses them.
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

    /// Returns whether the agent lists its sessions.
    pub(crate) fn lists(&self) -> bool {
        self.capabilities.list && !self.list_lies
    }
}

impl Slot {
    pub(crate) fn new(profile: String, dedicated: Option<SessionKey>, now: Time) -> Slot {
        Slot { profile, dedicated, since: now, ..Slot::default() }
    }

    pub(crate) fn profile(&self) -> &str {
        &self.profile
    }

    /// The only session of this slot, for profiles that do not share a process.
    pub(crate) fn dedicated(&self) -> Option<SessionKey> {
        self.dedicated
    }

    pub(crate) fn since(&self) -> Time {
        self.since
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Client extensions that the process has heard of.
    pub(crate) fn offer(&self) -> Option<&str> {
        self.client_meta.as_deref()
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.state == State::Queued
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    /// Returns whether it stops because it ignored a cancel.
    pub(crate) fn is_wedged(&self) -> bool {
        matches!(self.state, State::Stopping { why: StopWhy::Wedged, .. })
    }

    /// Returns whether it was given up because it failed again and again.
    pub(crate) fn is_crash_loop(&self) -> bool {
        self.state == State::Failed(Reason::AgentCrashLoop)
    }

    /// Returns the end of a sentence about the failure of the last start.
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

    pub(super) fn put(&mut self, host: Host) {
        self.host = Some(host);
    }

    pub(super) fn take(&mut self) -> Option<Host> {
        self.host.take()
    }

    /// Returns whether it stops to be restarted with fresh credentials.
    pub(crate) fn is_renewed(&self) -> bool {
        self.renewed && matches!(self.state, State::Stopping { why: StopWhy::Restart, .. })
    }

    /// Returns whether acpd logs this process in again, so that what needs that has to wait.
    pub(crate) fn is_logged_in_again(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.login == LoginRepeat::Asked)
    }

    /// Returns how long the start of the process has taken (ms).
    pub(crate) fn start_took(&self) -> u64 {
        let times = self.host.as_ref().and_then(|host| host.ready_since.zip(host.made));
        times.map_or(0, |(ready, made)| ready.since(made))
    }

    pub(crate) fn is_initializing(&self) -> bool {
        matches!(self.state, State::Initializing)
    }

    /// `initialize` is answered, and the process runs and is spoken with.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Ready | State::NeedsAuth)
            && self.host.as_ref().is_some_and(|host| host.reachable)
    }

    /// The running process, if it can be talked to.
    pub(crate) fn usable_host(&self) -> Option<HostId> {
        self.is_up().then_some(self.host.as_ref()?.id)
    }

    /// Remaining processes of the last run, if known.
    pub(crate) fn leftovers(&self) -> Option<&str> {
        self.host.as_ref()?.leftovers.as_deref()
    }

    pub(super) fn forgive(&mut self) {
        self.failures = Failures::default();
    }

    /// A run that was good for long enough has crashed: that is all that counts.
    pub(super) fn crashed_after_a_good_run(&mut self, now: Time) {
        self.failures = Failures { at: VecDeque::from([now]), in_a_row: 0 };
    }

    /// Counts a crash or a failed start.
    pub(super) fn failed(&mut self, now: Time, window: u64) -> Failed {
        let Failures { at, in_a_row } = &mut self.failures;
        at.push_back(now);
        while at.front().is_some_and(|at| now.since(*at) > window) {
            at.pop_front();
        }
        *in_a_row += 1;
        Failed { in_a_row: *in_a_row, of_late: at.len() as u32 }
    }

    /// How often it has failed since the last run that was good for long enough.
    pub(super) fn failures(&self) -> u32 {
        self.failures.in_a_row
    }

    /// Why it is in its state, for people.
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

/// From one SIGKILL to the next (ms).
pub(crate) const KILL_AGAIN: u64 = 1_000;

/// The party that needs a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A person's start or prompt: clears a crash loop and a back-off.
    Person,
    /// acpd itself: obeys back-off and budget.
    Policy,
}

impl WaitFor {
    /// Returns the directory of its session, and what is known of that.
    pub(crate) fn directory(&mut self) -> Option<(&str, &mut Directory)> {
        match self {
            WaitFor::New(new) => Some((&new.cwd, &mut new.directory)),
            WaitFor::Adopt(adoption) => Some((&adoption.cwd, &mut adoption.directory)),
            WaitFor::Initialize | WaitFor::Relay { .. } => None,
        }
    }
}
