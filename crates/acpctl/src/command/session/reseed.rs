//! `acpctl session reseed`: continues a session in a new one of the agent.

use acpd_api::{SessionInfo, SessionState};

use crate::text::{Text, text};

/// Describes a session that the agent's next one continues.
pub(super) fn said(session: &SessionInfo) -> Text {
    let said = text!(
        "the next prompt of {} continues in a new session of {}",
        session.handle(),
        session.agent
    );
    match (session.state, &session.reason, &session.hint) {
        (SessionState::Blocked, Some(reason), Some(hint)) => {
            text!("{}\nbefore that, {}: {}", said, reason, hint)
        }
        _ => said,
    }
}
