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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_in_the_way_is_told_as_well() {
        let session = |more: serde_json::Value| -> SessionInfo {
            let mut session = json!({"sessionId": "s-1", "name": "fix", "agent": "demo", "cwd": "/w",
                "state": "parked", "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0,
                "prompts": 1, "seq": 4, "created": 0, "updated": 0});
            session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(session).unwrap()
        };
        let given_up = "the next prompt of fix continues in a new session of demo";
        assert_eq!(said(&session(json!({"reason": "a person gave it up"}))).as_str(), given_up);
        let blocked = json!({"state": "blocked", "reason": "the directory `/w` does not exist",
            "hint": "put it back"});
        let told =
            format!("{given_up}\nbefore that, the directory `/w` does not exist: put it back");
        assert_eq!(said(&session(blocked)).as_str(), told);
    }
}
