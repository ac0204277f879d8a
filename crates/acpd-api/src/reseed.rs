//! Reseeding: continuing a session without the agent's copy of it.

use serde::{Deserialize, Serialize};

use crate::SessionRef;

/// Parameters of `_acpd/session/reseed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReseedParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Also if the agent may still have the conversation: what it remembers is given up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
}
