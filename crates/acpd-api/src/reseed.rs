use serde::{Deserialize, Serialize};

use crate::SessionRef;

/// Parameters for giving up the agent's copy of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReseedParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Give up the copy even if the agent may still have the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
}
