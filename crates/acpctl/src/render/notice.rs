//! Notices that are in no journal, as sentences.

use acpd_api::{PromptQueued, Unanswered, method};

use crate::human;
use crate::text::{Role, Text, text};

/// Returns the sentence of a notice that is not in the journal.
pub(crate) fn sentence(name: &str, params: &str) -> Option<Text> {
    Some(match name {
        method::PROMPT_QUEUED => {
            let PromptQueued { ahead, .. } = serde_json::from_str(params).ok()?;
            let prompts = human::counted(ahead, "earlier prompt");
            text!("waiting for {} in this session", prompts)
        }
        method::UNANSWERED => {
            let Unanswered { agent, method, waited, .. } = serde_json::from_str(params).ok()?;
            let waited = human::duration(waited);
            text!(
                "agent `{}` has not answered `{}` for {}; Ctrl-C stops waiting, `acpctl agent restart {}` \
                 restarts the agent",
                agent,
                method,
                waited,
                agent
            )
        }
        _ => return None,
    })
}

pub(super) fn style(name: &str) -> Role {
    if name == method::UNANSWERED { Role::Warning } else { Role::Dim }
}
