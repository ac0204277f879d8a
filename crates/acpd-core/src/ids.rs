use acp_wire::Id;
use serde::{Deserialize, Serialize};

/// Stands for a client that is gone for good. Lines to it are dropped.
pub(crate) const NOBODY: ClientId = ClientId(u64::MAX);

/// Milliseconds since the Unix epoch. Monotonic within one daemon.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]

pub struct Time(pub u64);

impl Time {
    #[must_use]
    pub fn after(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// Milliseconds since `earlier`, 0 if that is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Formats milliseconds for people: `250 ms`, `10 s`, `3 min`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}

/// A session's row number: small, never reused, never shown.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionKey(pub u32);

impl SessionKey {
    /// Stands for a session that does not exist yet.
    pub(crate) const UNMADE: SessionKey = SessionKey(u32::MAX);
}

/// One run of one agent process. Unique across daemons.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct HostId(pub u64);

/// One client connection. Unique within a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A question or request of an agent. Unique across daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InteractionId(pub u64);

impl InteractionId {
    /// Formats the id for people: the daemon's number and the number in it.
    pub(crate) fn text(self) -> String {
        format!("{}-{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }

    pub(crate) fn parse(text: &str) -> Option<InteractionId> {
        let (boot, number) = text.split_once('-')?;
        let (boot, number): (u32, u32) = (boot.parse().ok()?, number.parse().ok()?);
        Some(InteractionId((u64::from(boot) << 32) | u64::from(number)))
    }
}

/// Position in a session's journal, from 1.
pub type Seq = u64;

/// A process slot: one per profile, or one per session for profiles that do not share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(crate) u32);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) slot: SlotId,
    pub(crate) host: HostId,
}

/// Issues ids with the daemon's number in the upper bits. Ids stay below 2⁵³ for JavaScript.
#[derive(Debug)]
pub(crate) struct IdSource {
    boot: u64,
    next: u64,
}

impl IdSource {
    pub(crate) fn new(boot: u64) -> IdSource {
        IdSource { boot, next: 1 }
    }

    pub(crate) fn boot(&self) -> u64 {
        self.boot
    }

    pub(crate) fn issue(&mut self) -> u64 {
        let id = (self.boot << 32) | self.next;
        self.next += 1;
        id
    }
}

/// A client's request, which is answered once. Stored as JSON: a [`Sender`], or null.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<Sender>", into = "Option<Sender>")]
pub struct Requester {
    pub(crate) client: ClientId,
    pub(crate) id: Id,
    /// Stands for the client in records; elsewhere `None`.
    token: Option<String>,
}

impl Requester {
    pub(crate) fn new(client: ClientId, id: Id) -> Requester {
        Requester { client, id, token: None }
    }

    pub(crate) fn nobody() -> Requester {
        Requester::new(NOBODY, Id::null())
    }
}

/// A request of a client that can reconnect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    pub token: String,
    pub id: Id,
}

impl From<Option<Sender>> for Requester {
    fn from(sender: Option<Sender>) -> Requester {
        let Some(Sender { token, id }) = sender else { return Requester::nobody() };
        Requester { token: Some(token), ..Requester::new(NOBODY, id) }
    }
}

impl From<Requester> for Option<Sender> {
    fn from(Requester { token, id, .. }: Requester) -> Option<Sender> {
        token.map(|token| Sender { token, id })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A client waits for an answer.
    Awaited,
    /// A client has the session open.
    Watched,
    Unattended,
}
