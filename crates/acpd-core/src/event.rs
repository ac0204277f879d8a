//! Events: what a machine reports. The hub decides who reacts, in the order of the events.

use acp_wire::ErrorObject;
use acpd_api::TurnEnded;
use bytes::Bytes;

use crate::fault::Fault;
use crate::ids::{ClientId, HostId, InteractionId, Requester, SessionKey, SlotId};
use crate::input::Effect;
use crate::record::EventKind;

/// A line for a process, such as the one that has asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: HostId,
    pub(crate) line: Bytes,
}

/// Lines for clients.
pub(crate) type ClientLines = Vec<(ClientId, Bytes)>;

/// A question that is no longer open.
#[derive(Debug)]
pub(crate) struct ClosedQuestion {
    pub(crate) question: InteractionId,
    pub(crate) session: Option<SessionKey>,
    /// Time that a permission question was open (ms).
    pub(crate) permission: Option<u64>,
    /// Lines that withdraw it.
    pub(crate) withdrawals: ClientLines,
}

#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// An effect of the machine's own, whose place among the reactions counts.
    Sent(Effect),
    /// A client has everything of a session up to the head.
    ClientCaughtUp { client: ClientId, session: SessionKey },
    /// A connection has ended, which was at these sessions. `returns`: the client, which has this number, may
    /// come back.
    ClientLeft { client: ClientId, number: u64, returns: bool, sessions: Vec<SessionKey> },
    /// A request of an agent is answered; its process may be gone.
    AgentAnswered(Answer),
    /// A notification for a process, which may be gone.
    ProcessNotified(Answer),
    /// A request of a client is answered; the client may be gone.
    ClientAnswered { to: Requester, line: Bytes },
    /// The client with this number is asked if it is here, or no longer asked.
    LenderAsked { client: u64, line: Bytes },
    /// A session has other MCP servers of its clients.
    ServersChanged { session: SessionKey, servers: Bytes },
    /// A notice is to be journalled and shown.
    SessionNoticed { session: SessionKey, severity: &'static str, text: String },
    /// The clients of an agent are notified.
    AgentNotified { agent: String, line: Bytes },
    /// An agent has told its name and what it can, which is news.
    AgentIntroduced(String),
    /// An agent ended without being asked to, and is started again.
    AgentRestarted(String),
    /// A process runs. It is to be asked for its capabilities.
    ProcessStarted(SlotId),
    /// A process has answered `initialize`: what waited for it continues.
    ProcessReady(SlotId),
    /// A process of the last daemon is spoken with again.
    ProcessAdopted(SlotId),
    /// A process does not even answer `initialize` without a login.
    StartWantsLogin { slot: SlotId, error: ErrorObject },
    /// A person has to log in.
    LoginWanted { slot: SlotId, reason: String },
    /// The last login is repeated for another process, by this method.
    LoginRepeated { slot: SlotId, method: String },
    /// A process is restarted with fresh credentials.
    CredentialsRenewed(SlotId),
    /// An agent has a login, or needs none: what waited for one continues.
    LoginWorked(String),
    /// A process is to end, and its turns before it.
    TurnsCancelled { slot: SlotId, because: String },
    /// A process ended by itself.
    ProcessCrashed { slot: SlotId, reason: String },
    /// Nothing that is open at a process gets an answer. `ended_late`: it crashed after a good run.
    ProcessLost { slot: SlotId, host: HostId, fault: Fault, ended_late: bool },
    /// Processes remain of a run that got SIGKILL.
    LeftoversFound,
    /// Everything that waits for a process is refused; the process may come later.
    WaitersRefused { slot: SlotId, fault: Fault },
    /// Nothing is left of a process.
    ProcessGone(SlotId),
    /// A session is over; `is_kept`: it can be brought back.
    SessionEnded { session: SessionKey, is_kept: bool },
    /// A process is gone, or a session: its slot may be of no use any more.
    SlotFreed(SlotId),
    /// A person restarts an agent: its processes are being stopped, or are left behind.
    RestartAsked { agent: String, to: Requester },
    /// A person has logged in to an agent.
    LoginDone { agent: String, to: Requester },
    /// acpd ends, when no process is left.
    ShutdownBegun,
    /// A process stays down: the clients that wait for that are answered.
    ProcessStopped(SlotId),
    /// There will be no process: what waits for it is refused, and nothing wants it back.
    ProcessGivenUp { slot: SlotId, fault: Fault },
    /// A line for a client, which must not overtake those of the session.
    ClientLine { client: ClientId, session: Option<SessionKey>, line: Bytes },
    /// A line for the journal of a session and the attached clients.
    SessionLine { session: SessionKey, kind: EventKind, line: Bytes },
    /// An agent asks for permission for the call in this line.
    CallAsked { session: SessionKey, line: Bytes },
    /// A question waits for people. The lines offer it.
    QuestionAsked { question: InteractionId, session: Option<SessionKey>, offers: ClientLines },
    /// A question has been answered, cancelled or withdrawn.
    QuestionClosed(ClosedQuestion),
    /// A person has answered whether turns may begin, with one of the options or a cancel.
    BudgetAnswered { session: SessionKey, option: Option<String> },
    /// A turn is over, and its end is in the journal.
    TurnEnded { session: SessionKey, ended: Box<TurnEnded> },
}
