//! Machines of a client that joins the daemons of several.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// A machine of a client that joins the daemons of several.
///
/// Ids and names of agents, sessions and questions begin with the name of their machine and a
/// slash then, except those of the client's own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Name in the configuration; `here` for the client's own machine.
    pub name: Untrusted,
    /// Reason why the machine cannot be reached; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Untrusted>,
}
