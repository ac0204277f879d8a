//! Identities inside the daemon.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch on a clock that never goes back within one daemon.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub u64);

impl Time {
    /// This time and so many milliseconds.
    #[must_use]
    pub fn after(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this, 0 when `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in milliseconds, for people: `250 ms`, `10 s`, `3 min`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}

/// A session's row number: small, never reused, never shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey(pub u32);

/// One run of one agent process. Unique across daemon incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u64);

/// One client connection. Unique within a daemon incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// An interaction: a question of an agent that waits for a person. Unique across incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InteractionId(pub u64);

impl InteractionId {
    /// As people type it: the incarnation and the number in it.
    pub(crate) fn text(self) -> String {
        format!("{}-{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }

    /// Reads what [`InteractionId::text`] writes.
    pub(crate) fn parse(text: &str) -> Option<InteractionId> {
        let (boot, number) = text.split_once('-')?;
        let (boot, number): (u32, u32) = (boot.parse().ok()?, number.parse().ok()?);
        Some(InteractionId((u64::from(boot) << 32) | u64::from(number)))
    }
}

/// Position in a session's journal, from 1.
pub type Seq = u64;
