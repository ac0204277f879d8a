//! Sessions in tables and cards.

use acpd_api::{RestoreLevel, SessionInfo, SessionState, TurnState, Untrusted};
use anstyle::Style;

use crate::human;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, RED, YELLOW};
use crate::table::{Cell, Table, key_values};
use crate::text::{Text, text};

/// Columns of a turn in the table: an agent may give any reason for its end.
const TURN: usize = 40;

/// Sessions as a table.
pub(crate) fn table<'a>(
    sessions: impl IntoIterator<Item = &'a SessionInfo>,
    now: u64,
    paint: Paint,
    width: Option<usize>,
) -> Text {
    let titles = ["SESSION", "AGENT", "STATE", "TURN", "PROMPTS", "USED", "DIRECTORY", "TITLE"];
    let mut table = Table::new(titles);
    for session in sessions {
        let (turn, style) = turn(session, now);
        table.row([
            Cell::new(handle(session), BOLD),
            (&session.agent).into(),
            Cell::new(state(session), state_style(session.state)),
            Cell::new(turn.cut(TURN), style),
            text!("{}", session.prompts).into(),
            human::ago(session.updated, now).into(),
            (&session.cwd).into(),
            about(session).into(),
        ]);
    }
    table.render(paint, width)
}

/// All of a session.
pub(crate) fn card(session: &SessionInfo, now: u64, paint: Paint) -> Text {
    let mut state = paint.apply(state_style(session.state), word(session));
    let reason = session.reason.as_ref().filter(|reason| **reason != word(session));
    if let Some(reason) = reason {
        state += text!(": {}", reason);
    }
    let (turn, turn_style) = turn(session, now);
    let mut rows = vec![("session", Text::from(&session.session_id))];
    rows.extend(session.name.as_ref().map(|name| ("name", name.into())));
    rows.extend(session.title.as_ref().map(|title| ("title", title.into())));
    rows.extend([
        ("agent", Text::from(&session.agent)),
        ("directory", Text::from(&session.cwd)),
        ("state", state),
    ]);
    rows.extend(session.hint.as_ref().map(|hint| ("hint", hint.into())));
    rows.extend(restored(session).map(|kept| ("restored", kept.into())));
    rows.extend([
        ("turn", paint.apply(turn_style, turn)),
        ("prompts", text!("{}", session.prompts)),
        ("clients", text!("{}", session.clients)),
        ("journal", text!("{} entries", session.seq)),
        ("created", human::clock(session.created)),
        ("used", text!("{} ({})", human::clock(session.updated), human::ago(session.updated, now))),
    ]);
    key_values(&rows, paint)
}

/// Why a session cannot continue and what to do, else its title.
fn about(session: &SessionInfo) -> Text {
    let stuck = matches!(session.state, SessionState::Lost | SessionState::Blocked);
    let told = [&session.reason, &session.hint].into_iter().flatten().filter(|_| stuck);
    let told: Vec<Text> = told.map(Text::from).collect();
    if told.is_empty() { text!("{}", session.title.as_ref()) } else { Text::join(told, "; ") }
}

/// The name of a session, or its id if it has none.
pub(crate) fn handle(session: &SessionInfo) -> &Untrusted {
    session.name.as_ref().unwrap_or(&session.session_id)
}

fn turn(session: &SessionInfo, now: u64) -> (Text, Style) {
    let passed = human::duration(now.saturating_sub(session.turn.since));
    let queued = match session.queued {
        0 => Text::new(),
        queued => text!(" +{}", queued),
    };
    match session.turn.state {
        TurnState::Working => (text!("working {}{}", passed, queued), CYAN),
        TurnState::NeedsAction => (text!("needs you {}{}", passed, queued), YELLOW),
        TurnState::Idle => match session.turn.last.as_ref().map(Untrusted::raw) {
            None | Some("end_turn") => ("idle".into(), Style::new()),
            Some(last) => {
                let last = Untrusted::from(last.replace('_', " "));
                (text!("idle ({})", last), Style::new())
            }
        },
    }
}

/// Its state for a table, with a mark if the agent has only a summary.
fn state(session: &SessionInfo) -> Text {
    let is_reseeded = session.restore == Some(RestoreLevel::Reseeded);
    text!("{}{}", word(session), if is_reseeded { " (reseeded)" } else { "" })
}

/// What the last restore kept, if that is not all.
fn restored(session: &SessionInfo) -> Option<&'static str> {
    Some(match session.restore? {
        RestoreLevel::Resumed => "resumed: the agent has the conversation",
        RestoreLevel::Loaded => "loaded: the agent has the conversation",
        RestoreLevel::Reseeded => "reseeded: the agent has a summary; your history is complete",
        RestoreLevel::Lost => "lost: the agent has nothing of it; your history is complete",
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
    })
}

fn word(session: &SessionInfo) -> &'static str {
    match session.state {
        _ if session.archived => "archived",
        SessionState::Live => "live",
        SessionState::Parked => "parked",
        SessionState::Restoring => "restoring",
        SessionState::Blocked => "blocked",
        SessionState::Lost => "lost",
        SessionState::Closed => "closed",
    }
}

fn state_style(state: SessionState) -> Style {
    match state {
        SessionState::Live => GREEN,
        SessionState::Parked | SessionState::Closed => DIM,
        SessionState::Restoring => CYAN,
        SessionState::Blocked => YELLOW,
        SessionState::Lost => RED,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_says_what_the_last_restore_kept_if_that_is_not_all() {
        let row = |restore: &str| {
            let session = json!({"sessionId": "s", "agent": "demo", "cwd": "/w", "state": "live",
                "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0, "prompts": 1,
                "seq": 4, "created": 0, "updated": 0, "restore": restore});
            let session: SessionInfo = serde_json::from_value(session).unwrap();
            let card = card(&session, 0, Paint::plain()).to_string();
            card.lines()
                .find_map(|line| line.strip_prefix("restored"))
                .map(|row| row.trim().to_owned())
        };
        for kept in ["resumed", "loaded", "reseeded", "lost"] {
            assert!(row(kept).is_some_and(|row| row.starts_with(kept)), "{kept}");
        }
        assert_eq!((row("exact"), row("renewed")), (None, None));
    }
}
