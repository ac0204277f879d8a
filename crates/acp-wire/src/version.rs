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

    /// Closing a session that nobody knows is no error.
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
}
