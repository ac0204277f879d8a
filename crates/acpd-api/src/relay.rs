//! Greeting of `acpctl relay` to an acpctl on another machine.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// First line of `acpctl relay`. The bytes after it are those of a connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayHello {
    /// Version of this line: 1.
    #[serde(rename = "acpdRelay")]
    pub relay: u32,
    /// [`API_VERSION`](crate::API_VERSION) of the relay.
    pub api: u32,
    /// Version of the relay's program.
    pub version: Untrusted,
    /// `false` if no daemon runs; the relay ends then.
    pub running: bool,
}
