//! Texts for a conversation that continues in a new session, and its summary.

use crate::profile::Reseed;

/// Prompt for an agent whose turn was interrupted, with `on_interrupted = "continue"`.
pub const GO_ON: &str = "You were interrupted while you worked on my last request. Find out what is \
                         done already, then finish what is left of it.";

/// Start of the text after the reason of a session that waits for a prompt to start over.
const PROMISE: &str = "; the next prompt continues in a new session, with ";

/// Beginning of a summary, sent before the first prompt of the new session.
pub(crate) const HEAD: &str = "[acpd] Our previous session was lost and could not be restored.";

/// Returns whether an agent made a title of the summary: many use the first words that they get.
pub(crate) fn is_of_summary(title: &str) -> bool {
    let title = title.trim_end_matches(['.', '…', ' ']);
    title.starts_with(HEAD) || title.starts_with("[acpd] ") && HEAD.starts_with(title)
}

/// A reason with what comes of it.
pub(crate) fn promise(reason: &str, what: Reseed) -> String {
    format!("{reason}{PROMISE}{}", what.name())
}

/// Returns the reason without what comes of it.
pub(crate) fn without_promise(reason: &str) -> Option<&str> {
    reason.rsplit_once(PROMISE).map(|(reason, _)| reason)
}

/// The summary of a session for the agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Summary {
    #[default]
    Unknown,
    Asked,
    Known(String),
}
