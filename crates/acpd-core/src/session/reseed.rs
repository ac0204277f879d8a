//! Texts for a conversation that continues in a new session, and its summary.

use acp_wire::{locate, splice};
use bytes::Bytes;
use serde_json::json;

use crate::profile::Reseed;
use crate::session::Session;

fn with_first_block(prompt: Bytes, summary: &str) -> Bytes {
    let Some(blocks) = locate(&prompt, &["params", "prompt"]) else { return prompt };
    let text = if summary.is_empty() { "(acpd's journal says nothing more.)" } else { summary };
    let text = format!(
        "{HEAD} This is all that is known of it:\n\n{text}\n\n[acpd] My next message follows."
    );
    let first = json!({ "type": "text", "text": text });
    let is_empty = prompt[blocks.start + 1..].trim_ascii_start().starts_with(b"]");
    let block = format!("{first}{}", if is_empty { "" } else { "," });
    let at = blocks.start + 1;
    splice(&prompt, &[(at..at, block.as_bytes())])
}

/// Prompt for an agent whose turn was interrupted, with `on_interrupted = "continue"`.
pub const GO_ON: &str = "You were interrupted while you worked on my last request. Find out what is \
                         done already, then finish what is left of it.";

/// Follows the reason of a session that starts over with the next prompt.
const PROMISE: &str = "; the next prompt continues in a new session, with ";

/// Beginning of a summary, sent before the first prompt of the new session.
pub(crate) const HEAD: &str = "[acpd] Our previous session was lost and could not be restored.";

/// Returns whether an agent made a title from the summary. Many use the first words that they get.
pub(crate) fn is_of_summary(title: &str) -> bool {
    let title = title.trim_end_matches(['.', '…', ' ']);
    title.starts_with(HEAD) || title.starts_with("[acpd] ") && HEAD.starts_with(title)
}

pub(crate) fn promise(reason: &str, what: Reseed) -> String {
    format!("{reason}{PROMISE}{}", what.name())
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Summary {
    #[default]
    Unknown,
    Asked,
    Known(String),
}

impl Session {
    pub(crate) fn why_given_up(&self) -> String {
        let reason = self.row.reason.as_deref();
        match reason.and_then(|reason| reason.rsplit_once(PROMISE)) {
            Some((reason, _)) => reason.to_owned(),
            None => "it was given up before, and the agent has said nothing since".to_owned(),
        }
    }

    pub(crate) fn with_summary(&mut self, prompt: Bytes) -> Bytes {
        match std::mem::take(&mut self.summary) {
            Summary::Known(text) if self.owes_summary() => with_first_block(prompt, &text),
            _ => prompt,
        }
    }
}
