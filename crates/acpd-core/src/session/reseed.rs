//! Texts for a conversation that continues in a new session, its summary, and advice for the user.

use acp_wire::{locate, splice};
use acpd_api::RestoreLevel;
use bytes::Bytes;
use serde_json::json;

use crate::auth::login_hint;
use crate::fault::Fault;
use crate::ids::SessionKey;
use crate::profile::Reseed;
use crate::record::Dormant;
use crate::session::table::Sessions;
use crate::session::{Session, State};

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

impl Sessions {
    pub(crate) fn why_given_up(&self, key: SessionKey) -> String {
        let reason = self.session(key).row.reason.as_deref();
        match reason.and_then(|reason| reason.rsplit_once(PROMISE)) {
            Some((reason, _)) => reason.to_owned(),
            None => "it was given up before, and the agent has said nothing since".to_owned(),
        }
    }

    pub(crate) fn with_summary(&mut self, key: SessionKey, prompt: Bytes) -> Bytes {
        let owed = self.session(key).owes_summary();
        match std::mem::take(&mut self.session_mut(key).summary) {
            Summary::Known(text) if owed => with_first_block(prompt, &text),
            _ => prompt,
        }
    }
}

impl Session {
    pub(crate) fn way_out(&self) -> Option<String> {
        let row = &self.row;
        match (&self.state, row.rest) {
            (State::Live | State::Dormant, Dormant::NeedsLogin) => Some(login_hint(&row.agent)),
            (State::Live | State::Restoring(_), _)
            | (State::Dormant, Dormant::Parked | Dormant::Closed) => None,
            (State::Dormant, Dormant::Failed) if self.has_context() => Some(format!(
                "the next prompt tries again, and `acpctl session reseed {}` continues in a new \
                 session instead",
                row.word()
            )),
            (State::Dormant, Dormant::Failed) => Some("the next prompt tries again".to_owned()),
            (State::Dormant, Dormant::Lost) => Some(format!(
                "`acpctl session reseed {}` continues in a new session, `acpctl agent restart {}` \
                 looks for it once more",
                row.word(),
                row.agent
            )),
            (State::Dormant, Dormant::NoDirectory) => Some(format!(
                "put it back, or tell where it is: `acpctl session move {} --cwd DIR`",
                row.word()
            )),
        }
    }

    /// Returns whether the agent's new session lacks the conversation.
    pub(crate) fn owes_summary(&self) -> bool {
        self.row.restore == Some(RestoreLevel::Reseeded) && !self.row.heard
    }

    pub(crate) fn has_context(&self) -> bool {
        (self.row.prompts > 0 || self.row.heard) && !self.owes_summary()
    }

    pub(crate) fn still_has_it(&self) -> Fault {
        let row = &self.row;
        let (handle, word, agent) = (row.handle(), row.word(), &row.agent);
        let text =
            format!("agent `{agent}` may still have session `{handle}`: a new one knows less");
        let hint = format!(
            "the next prompt continues in it; to give it up all the same: \
             `acpctl session reseed {word} --discard`"
        );
        Fault::invalid(text).session(&row.public_id).hint(hint)
    }
}
