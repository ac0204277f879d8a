//! Versions of the protocol, and what differs between them for the engine.
//!
//! acpd keeps its journals in version 1. [`dialect`](crate::dialect) converts lines.

use serde::{Deserialize, Serialize};

/// A version of the protocol that acpd speaks.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Version {
    /// Version 1.
    #[default]
    #[serde(rename = "1")]
    V1 = 1,
    /// Version 2, a preview.
    #[serde(rename = "2")]
    V2 = 2,
}

impl Version {
    /// The answer to a prompt says that the prompt is in the history, not that its turn is over.
    pub fn answers_insertion(self) -> bool {
        self == Version::V2
    }

    /// A client gets its own messages and changes back, with those of others.
    pub fn echoes(self) -> bool {
        self == Version::V2
    }

    /// Closing an unknown session is no error.
    pub fn closes_unknown(self) -> bool {
        self == Version::V2
    }

    /// Updates say whether a session works or waits, and when a replay ends.
    pub fn tells_states(self) -> bool {
        self == Version::V2
    }

    /// Each chunk has the id of its message.
    pub fn names_messages(self) -> bool {
        self == Version::V2
    }

    /// The mode of a session is one of its options.
    pub fn has_modes_as_option(self) -> bool {
        self == Version::V2
    }

    /// An agent takes its questions back itself when their work is cancelled.
    pub fn withdraws_questions(self) -> bool {
        self == Version::V2
    }

    /// Tool calls may go on when a turn has ended.
    pub fn calls_outlive_turns(self) -> bool {
        self == Version::V2
    }

    /// The number of the version.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// Returns whether this is version 1.
    pub fn is_first(&self) -> bool {
        *self == Version::V1
    }
}

/// The versions that acpd may speak with an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Versions {
    /// Version 1 only.
    #[default]
    #[serde(rename = "1")]
    One,
    /// Version 2 only.
    #[serde(rename = "2")]
    Two,
    /// Version 2 if the agent has it, or else version 1.
    #[serde(rename = "auto")]
    Auto,
}

impl Versions {
    /// Returns whether the agent is asked for version 2.
    pub fn asks_for_2(self) -> bool {
        self != Versions::One
    }

    /// Returns whether acpd may speak this version.
    pub fn allows(self, version: Version) -> bool {
        match self {
            Versions::One => version == Version::V1,
            Versions::Two => version == Version::V2,
            Versions::Auto => true,
        }
    }
}
