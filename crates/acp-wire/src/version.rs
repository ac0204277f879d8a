//! Versions of the protocol, and what differs between them for the engine.
//!
//! acpd keeps its journals in version 1. [`dialect`](crate::dialect) has the conversions.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::build::ErrorObject;
use crate::dialect;

/// A version of the protocol that acpd speaks.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Version {
    /// Version 1.
    #[default]
    #[serde(rename = "1")]
    V1,
    /// Version 2, a preview.
    #[serde(rename = "2")]
    V2,
}

impl Version {
    /// The number on the wire.
    pub fn number(self) -> u16 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    /// The answer to a prompt says that the prompt is in the history, not that its turn is over.
    pub fn answers_insertion(self) -> bool {
        self == Version::V2
    }

    /// A client gets its own messages and changes back, with those of others.
    pub fn echoes(self) -> bool {
        self == Version::V2
    }

    /// Updates say whether a session works or waits, and when a replay ends.
    pub fn tells_states(self) -> bool {
        self == Version::V2
    }

    /// The mode of a session is one of its options.
    pub fn has_modes_as_option(self) -> bool {
        self == Version::V2
    }

    /// Converts a `session/update` of an agent for a client; see [`dialect::update_to_v2`].
    pub fn update(self, line: &Bytes, entity: Option<u64>) -> Option<Bytes> {
        match self {
            Version::V1 => Some(line.clone()),
            Version::V2 => dialect::update_to_v2(line, entity),
        }
    }

    /// Converts an agent's question for a client; see [`dialect::question_to_v2`].
    pub fn question(self, line: Bytes, turn: u64) -> Bytes {
        match self {
            Version::V1 => line,
            Version::V2 => dialect::question_to_v2(&line, turn),
        }
    }

    /// Converts the result of `initialize` for a client; see [`dialect::initialized_to_v2`].
    pub fn initialized(self, result: Bytes) -> Bytes {
        match self {
            Version::V1 => result,
            Version::V2 => dialect::initialized_to_v2(&result),
        }
    }

    /// Converts the answer to `session/new` or `session/fork` for a client; see
    /// [`dialect::opened_to_v2`].
    pub fn opened(self, line: Bytes) -> Bytes {
        match self {
            Version::V1 => line,
            Version::V2 => dialect::opened_to_v2(&line),
        }
    }

    /// Converts a client's request into acpd's own form. `None`: it has that form. Fails if the
    /// version forbids the request.
    pub fn request<'a>(
        self,
        method: &'a str,
        line: &Bytes,
    ) -> Result<Option<dialect::Request<'a>>, ErrorObject> {
        match self {
            Version::V1 => Ok(None),
            Version::V2 => dialect::request_from_v2(method, line).map(Some),
        }
    }
}
