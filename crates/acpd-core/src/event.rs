//! Events: facts that machines report. The hub decides who reacts, in the order of the events.

use acp_wire::ErrorObject;
use acpd_api::TurnEnded;
use bytes::Bytes;

use crate::fault::Fault;
use crate::ids::{ClientId, HostId, InteractionId, Requester, SessionKey, SlotId};
use crate::input::Effect;
use crate::record::EventKind;

pub(crate) type ClientLines = Vec<(ClientId, Bytes)>;

#[derive(Debug)]
pub(crate) struct ClosedQuestion {
    pub(crate) question: InteractionId,
    pub(crate) session: Option<SessionKey>,
    /// Time that a permission question was open (ms).
    pub(crate) permission: Option<u64>,
    /// Lines that withdraw the offers.
    pub(crate) withdrawals: ClientLines,
}

#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// The machine's own effect, in its order among the reactions.
    Sent(Effect),
    /// A client has all lines of a session up to the head.
    ClientCaughtUp { client: ClientId, session: SessionKey },
    /// A connection with these attachments ended. `number`: the client's; `returns`: the client may
    /// reconnect.
    ClientLeft { client: ClientId, number: u64, returns: bool, sessions: Vec<SessionKey> },
    /// The process may be gone.
    AgentAnswered { host: HostId, line: Bytes },
    /// The process may be gone.
    ProcessNotified { host: HostId, line: Bytes },
    /// The client may be gone.
    ClientAnswered { to: Requester, line: Bytes },
    /// A request to the client with this number, or the cancellation of one, if the client is
    /// connected.
    LenderAsked { client: u64, line: Bytes },
    /// The MCP servers of a session's clients changed.
    ServersChanged { session: SessionKey, servers: Bytes },
    /// A notice for the journal and for attached clients.
    SessionNoticed { session: SessionKey, severity: &'static str, text: String },
    /// A notice for the clients of an agent.
    AgentNotified { agent: String, line: Bytes },
    /// A process runs and needs `initialize`.
    ProcessStarted(SlotId),
    /// A process answered `initialize`: waiting requests continue.
    ProcessReady(SlotId),
    /// acpd has taken over a process of the last daemon.
    ProcessAdopted(SlotId),
    /// A process refuses even `initialize` without a login.
    StartWantsLogin { slot: SlotId, error: ErrorObject },
    /// The user must log in.
    LoginWanted { slot: SlotId, reason: String },
    /// acpd repeats the last login, with this method, for another process.
    LoginRepeated { slot: SlotId, method: String },
    /// A process is restarted with fresh credentials.
    CredentialsRenewed(SlotId),
    /// An agent has a login, or needs none: waiting sessions continue.
    LoginWorked(String),
    /// A process is going to be stopped, so its turns are cancelled first.
    TurnsCancelled { slot: SlotId, because: String },
    /// The leader of a process ended by itself.
    ProcessCrashed { slot: SlotId, reason: String },
    /// Open requests to a process get no answer. `ended_late`: the process crashed after a good
    /// run.
    ProcessLost { slot: SlotId, host: HostId, fault: Fault, ended_late: bool },
    /// Requests and prompts that wait for a process are refused. `for_good`: no process will come.
    WaitersRefused { slot: SlotId, fault: Fault, for_good: bool },
    /// A process and all its descendants are gone.
    ProcessGone(SlotId),
    /// `is_kept`: the session can be restored.
    SessionEnded { session: SessionKey, is_kept: bool },
    /// A process or a session is gone, so the slot may be unused.
    SlotFreed(SlotId),
    /// The user ends the daemon, or processes of the last run survived SIGKILL: there may be
    /// nothing left to wait for.
    EndPossible,
    /// A process stays down: clients that wait for the stop are answered.
    ProcessStopped(SlotId),
    /// A line for a client, sent after the earlier lines of the session.
    ClientLine { client: ClientId, session: Option<SessionKey>, line: Bytes },
    /// A line for the journal of a session and for attached clients.
    SessionLine { session: SessionKey, kind: EventKind, line: Bytes },
    /// An agent requests permission for the call in this line.
    CallAsked { session: SessionKey, line: Bytes },
    /// People are asked; the lines are the offers.
    QuestionAsked { question: InteractionId, session: Option<SessionKey>, offers: ClientLines },
    /// A question was answered, cancelled or withdrawn.
    QuestionClosed(ClosedQuestion),
    /// The user answered the budget's question, with an option or a cancel.
    BudgetAnswered { session: SessionKey, option: Option<String> },
    /// The end of the turn is in the journal.
    TurnEnded { session: SessionKey, ended: Box<TurnEnded> },
}
