//! `acpctl session reseed`: continues a session in a new one of the agent.

use acpd_api::{ReseedParams, SessionInfo, SessionState, method};

use crate::door::Door;
use crate::error::Result;
use crate::lookup::{Care, Which, find};
use crate::text::{Text, text};
use crate::ui::Ui;

/// Gives up what the agent has of a session.
pub(super) fn reseed(session: &Which, discard: bool, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let session = find(&mut connection, session, Care::Exact, ui)?;
    let params = ReseedParams { session: session.exactly(), discard };
    let info: SessionInfo = connection.call(method::SESSION_RESEED, &params)?;
    ui.say(said(&info));
    Ok(())
}

fn said(session: &SessionInfo) -> Text {
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
