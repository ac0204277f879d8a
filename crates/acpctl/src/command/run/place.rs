//! Tells our own turn from the turns of other clients in the same session.

use acp_wire::read_legible;
use acpd_api::{Meta, UpdateMeta};
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Updates belong to our turn.
    Own,
    /// At most this many turns of others end first: a waiting prompt can be withdrawn.
    Behind(u32),
    /// A turn began, and its first update shows whose it is.
    Unsure(u32),
}

impl Place {
    pub(super) fn behind(ahead: u32) -> Place {
        if ahead == 0 { Place::Own } else { Place::Behind(ahead) }
    }

    pub(super) fn turn_ended(&mut self) {
        if let Place::Behind(left) | Place::Unsure(left) = *self {
            *self = Place::Behind(left.saturating_sub(1));
        }
    }

    pub(super) fn turn_started(&mut self) {
        match *self {
            Place::Behind(0) => *self = Place::Own,
            Place::Behind(left) => *self = Place::Unsure(left),
            Place::Own | Place::Unsure(_) => {}
        }
    }

    /// Returns whether a `session/update` belongs to our turn. The daemon sends a prompt to all clients but
    /// its sender, before anything else of its turn.
    pub(super) fn is_ours(&mut self, params: &str) -> bool {
        if let Place::Unsure(left) = *self {
            *self = if is_prompt(params) { Place::Behind(left) } else { Place::Own };
        }
        *self == Place::Own
    }
}

/// Returns whether an update is the prompt that a turn began with; a message into a running turn is not.
fn is_prompt(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Params {
        update: Update,
        #[serde(rename = "_meta", default)]
        meta: Meta<UpdateMeta>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        session_update: String,
    }
    read_legible::<Params>(params)
        .is_ok_and(|p| p.update.session_update == "user_message_chunk" && !p.meta.own.steered)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = r#"{"update":{"sessionUpdate":"user_message_chunk"}}"#;
    const ANSWER: &str = r#"{"update":{"sessionUpdate":"agent_message_chunk"}}"#;

    #[test]
    fn nothing_is_ours_before_all_turns_ahead_have_ended() {
        let mut place = Place::behind(2);
        assert!(!place.is_ours(ANSWER));
        place.turn_ended();
        place.turn_started();
        assert!(!place.is_ours(PROMPT) && !place.is_ours(ANSWER));
        place.turn_ended();
        assert!(!place.is_ours(ANSWER));
        place.turn_started();
        assert!(place.is_ours(ANSWER));
    }

    #[test]
    fn a_prompt_ahead_that_was_withdrawn_is_not_waited_for() {
        let mut place = Place::behind(3);
        place.turn_ended();
        place.turn_started();
        assert!(place.is_ours(ANSWER));
    }

    #[test]
    fn what_is_said_into_our_turn_is_not_the_prompt_of_another() {
        let steered = r#"{"update":{"sessionUpdate":"user_message_chunk"},"_meta":{"_acpd":{"steered":true}}}"#;
        let mut place = Place::behind(1);
        place.turn_ended();
        place.turn_started();
        assert!(place.is_ours(steered) && place.is_ours(ANSWER));
    }

    #[test]
    fn without_a_queue_everything_is_ours() {
        let mut place = Place::behind(0);
        assert!(place.is_ours(ANSWER));
        place.turn_started();
        assert!(place.is_ours(PROMPT));
    }
}
