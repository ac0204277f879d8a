//! Versions of the protocol.

use serde::{Deserialize, Serialize};

/// A version of the protocol, in JSON its number.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "u8", try_from = "u8")]
pub enum Version {
    /// Version 1, the form in which acpd keeps lines.
    #[default]
    V1,
    /// Version 2.
    V2,
}

impl From<Version> for u8 {
    fn from(version: Version) -> Self {
        match version {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }
}

impl TryFrom<u8> for Version {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            _ => Err(format!("protocol version {number} is not supported")),
        }
    }
}
