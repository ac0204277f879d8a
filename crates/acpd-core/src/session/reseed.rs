//! What is said when a conversation goes on in a new session, and the summary that it needs.

use crate::profile::Reseed;

/// What acpd says to an agent whose turn was cut off, with `on_interrupted = "continue"`.
pub const GO_ON: &str = "You were interrupted while you worked on my last request. Find out what is \
                         done already, then finish what is left of it.";

/// Start of what follows the reason of a session that waits for a prompt to begin anew.
const PROMISE: &str = "; the next prompt continues in a new session, with ";

/// What a summary begins with, which goes to the agent before the first prompt of the new session.
pub(crate) const HEAD: &str = "[acpd] Our previous session was lost and could not be restored.";

/// Whether an agent has made a title of the summary: many take the first words that they are told, as many as they like.
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

/// What a session was about, for the agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Summary {
    #[default]
    Unknown,
    Asked,
    Known(String),
}
