use std::collections::BTreeSet;

use acpd_api::{
    Doing, DoingKind, QueuedPrompt, RestoreLevel, SessionInfo, SessionState, TurnState, Untrusted,
};

use crate::human;
use crate::text::{BOLD, Cut, Role, Table, Text, key_values, text};

/// An agent may give any reason for the end of a turn.
const TURN_WIDTH: usize = 40;

/// Minimum length of a short id. Tables show it, and every command accepts it.
pub(crate) const SHORT_ID: usize = 8;

const BRANCHES: [&str; 4] = ["", "└ ", "  └ ", "    └ "];

/// Columns that may be dropped, the first one first.
const DROPPED: [&str; 7] = ["PROMPTS", "LABELS", "USED", "DIRECTORY", "AGENT", "NOW", "TITLE"];

/// Returns sessions in the order of a tree, with their depth. A delegated session is below the
/// session that it works for, or at the top if that is not listed.
fn tree(mut left: Vec<&SessionInfo>) -> Vec<(usize, &SessionInfo)> {
    let mut order = Vec::new();
    let mut path: Vec<&SessionInfo> = Vec::new();
    loop {
        let is_next = |one: &&SessionInfo| match (path.last(), &one.parent) {
            (Some(over), Some(parent)) => parent.is_of(over),
            (None, Some(parent)) => left.iter().all(|other| !parent.is_of(other)),
            (over, None) => over.is_none(),
        };
        match left.iter().position(is_next) {
            Some(at) => {
                let one = left.remove(at);
                order.push((path.len(), one));
                path.push(one);
            }
            None if path.pop().is_none() => break,
            None => {}
        }
    }
    // Ids are reused, so there may be a cycle without a root.
    order.extend(left.into_iter().map(|session| (0, session)));
    order
}

/// Returns the table of sessions; in a tree, each is indented by its depth. On a terminal, ids are
/// short and directories begin with `~`. A column shows current activities, if there are any.
pub(crate) fn table<'a>(
    sessions: impl IntoIterator<Item = &'a SessionInfo>,
    is_tree: bool,
    now: u64,
    width: Option<usize>,
) -> Text {
    let sessions: Vec<&SessionInfo> = sessions.into_iter().collect();
    let nested =
        if is_tree { tree(sessions) } else { sessions.into_iter().map(|one| (0, one)).collect() };
    let (depths, sessions): (Vec<usize>, Vec<&SessionInfo>) = nested.into_iter().unzip();
    let titles = [
        "SESSION",
        "AGENT",
        "STATE",
        "TURN",
        "NOW",
        "PROMPTS",
        "USED",
        "DIRECTORY",
        "LABELS",
        "TITLE",
    ];
    let ids: BTreeSet<&str> = sessions.iter().map(|session| session.session_id.raw()).collect();
    let name = |session: &SessionInfo| match (&session.name, width) {
        (None, Some(_)) => short_id(session, &ids),
        _ => session.handle().clone(),
    };
    // A name may be cut, but not a short id.
    let unnamed = sessions.iter().filter(|session| session.name.is_none());
    let longest = unnamed.map(|session| Text::from(name(session)).width()).max();
    let home = acpd_sys::paths::home().filter(|_| width.is_some());
    let row = |(depth, session): (&usize, &&SessionInfo)| {
        let (turn, style) = turn(session, now);
        let branch = BRANCHES[(*depth).min(BRANCHES.len() - 1)];
        [
            Text::styled(BOLD, text!("{}{}", branch, name(session))),
            (&session.agent).into(),
            state(session),
            Text::styled(style, turn.cut(TURN_WIDTH)),
            session.doing.as_ref().map(now_doing).unwrap_or_default(),
            text!("{}", session.prompts),
            human::ago(session.updated, now),
            human::directory(&session.cwd, home.as_deref()),
            labels(session).unwrap_or_default(),
            about(session),
        ]
    };
    Table::new(titles, depths.iter().zip(&sessions).map(row))
        .cut("SESSION", Cut::End(longest.unwrap_or_default().max(12)))
        .cut("TURN", Cut::End(12))
        .cut("NOW", Cut::End(16))
        .hide_if_empty("NOW")
        .cut("DIRECTORY", Cut::Middle(12))
        .cut("LABELS", Cut::End(12))
        .hide_if_empty("LABELS")
        .cut("TITLE", Cut::End(12))
        .drop(&DROPPED)
        .render(width)
}

/// Returns the shortest unique beginning of an id.
fn short_id(session: &SessionInfo, all: &BTreeSet<&str>) -> Untrusted {
    let id = session.session_id.raw();
    // Without its number, an id that acpd numbered is another session's.
    let is_numbered = id.rsplit_once('.').is_some_and(|(_, number)| number.parse::<u64>().is_ok());
    let is_others = |begin: &str| {
        let mut next = all.range(begin..).filter(|other| **other != id);
        next.next().is_some_and(|other| other.starts_with(begin))
    };
    let ends = id.char_indices().map(|(at, _)| at).skip(SHORT_ID).filter(|_| !is_numbered);
    let short = ends.map(|end| &id[..end]).find(|begin| !is_others(begin));
    short.unwrap_or(id).into()
}

pub(crate) fn card(session: &SessionInfo, now: u64) -> Text {
    let (word, style) = look(session);
    let mut state = Text::styled(style, word);
    let reason = session.reason.as_ref().filter(|reason| **reason != word);
    if let Some(reason) = reason {
        state += text!(": {}", reason);
    }
    let (turn, turn_style) = turn(session, now);
    let used = text!("{} ({})", human::clock(session.updated), human::ago(session.updated, now));
    let rows = [
        ("session", Some((&session.session_id).into())),
        ("name", session.name.as_ref().map(Text::from)),
        ("title", session.title.as_ref().map(Text::from)),
        ("labels", labels(session)),
        ("agent", Some((&session.agent).into())),
        ("directory", Some((&session.cwd).into())),
        ("state", Some(state)),
        ("process", session.pid.map(|pid| text!("{}", pid))),
        ("hint", session.hint.as_ref().map(Text::from)),
        ("restored", restored(session).map(Text::from)),
        ("turn", Some(Text::styled(turn_style, turn))),
        ("background", background(session)),
        ("prompts", Some(text!("{}", session.prompts))),
        ("usage", session.usage.as_ref().map(human::usage)),
        ("clients", Some(text!("{}", session.clients))),
        ("journal", Some(text!("{} entries", session.seq))),
        ("created", Some(human::clock(session.created))),
        ("used", Some(used)),
    ];
    let rows = rows.into_iter().filter_map(|(key, value)| Some((key, value?)));
    key_values(&rows.collect::<Vec<_>>())
}

/// Returns the labels in one line, if there are any.
pub(crate) fn labels(session: &SessionInfo) -> Option<Text> {
    let labels: Vec<_> = session.labels.iter().map(Text::from).collect();
    (!labels.is_empty()).then(|| Text::join(labels, ", "))
}

fn background(session: &SessionInfo) -> Option<Text> {
    let names: Vec<_> = session.background.iter().map(|work| Text::from(work.name())).collect();
    (!names.is_empty()).then(|| Text::join(names, "; "))
}

/// Returns why a session cannot continue and how to fix it, or else its title.
fn about(session: &SessionInfo) -> Text {
    let stuck = matches!(session.state, SessionState::Lost | SessionState::Blocked);
    let details = [&session.reason, &session.hint].into_iter().flatten().filter(|_| stuck);
    let details: Vec<Text> = details.map(Text::from).collect();
    if details.is_empty() { text!("{}", session.title.as_ref()) } else { Text::join(details, "; ") }
}

fn now_doing(Doing { kind, text: said, .. }: &Doing) -> Text {
    match kind {
        DoingKind::Starting => "starting".into(),
        DoingKind::Thinking => "thinking".into(),
        DoingKind::Writing => text!("writing: {}", said),
        DoingKind::Tool | DoingKind::Command | DoingKind::Waiting | DoingKind::Other => said.into(),
    }
}

/// Describes the current state: `running: cargo test, 12s`, `waiting for you: …`, `idle`.
pub(crate) fn current_activity(session: &SessionInfo, now: u64) -> Text {
    let Some(Doing { kind, text: said, since }) = &session.doing else {
        return match session.turn.state {
            TurnState::Idle => "idle".into(),
            TurnState::Working => {
                text!("working for {}", human::duration(now.saturating_sub(session.turn.since)))
            }
            TurnState::NeedsAction => "waiting for you".into(),
        };
    };
    let what = match kind {
        DoingKind::Starting => "the agent has the prompt",
        DoingKind::Thinking => "thinking",
        DoingKind::Writing => "writing",
        DoingKind::Tool | DoingKind::Command => "running",
        DoingKind::Waiting => "waiting for you",
        DoingKind::Other => "working",
    };
    let said = (!said.is_empty()).then(|| text!(": {}", said));
    text!("{}{}, {}", what, said, human::duration(now.saturating_sub(*since)))
}

pub(crate) fn is_at_work(session: &SessionInfo) -> bool {
    session.turn.state != TurnState::Idle || session.queued > 0 || !session.background.is_empty()
}

fn turn(session: &SessionInfo, now: u64) -> (Text, Role) {
    let passed = human::duration(now.saturating_sub(session.turn.since));
    let queued = (session.queued > 0).then(|| text!(" +{}", session.queued));
    match session.turn.state {
        TurnState::Working => (text!("working {}{}", passed, queued), Role::Name),
        TurnState::NeedsAction => (text!("needs you {}{}", passed, queued), Role::Warning),
        TurnState::Idle if session.limited_until.is_some() => {
            let left = session.limited_until.unwrap_or_default().saturating_sub(now);
            (text!("limit, {} left", human::duration(left)), Role::Warning)
        }
        TurnState::Idle if !session.background.is_empty() => {
            (text!("{} in background", session.background.len()), Role::Name)
        }
        TurnState::Idle => match session.turn.last.as_ref().map(Untrusted::raw) {
            None | Some("end_turn") => ("idle".into(), Role::Plain),
            Some(last) => {
                let last = Untrusted::from(last.replace('_', " "));
                (text!("idle ({})", last), Role::Plain)
            }
        },
    }
}

fn state(session: &SessionInfo) -> Text {
    let level = match session.restore {
        Some(RestoreLevel::Reseeded) => " (reseeded)",
        Some(RestoreLevel::Partial) => " (partial)",
        _ => "",
    };
    let (word, style) = look(session);
    Text::styled(style, text!("{}{}", word, level))
}

fn restored(session: &SessionInfo) -> Option<&'static str> {
    Some(match session.restore? {
        RestoreLevel::Resumed => "resumed: the agent has the conversation",
        RestoreLevel::Loaded => "loaded: the agent has the conversation",
        RestoreLevel::Partial => "partial: the agent may lack some of it; your history is complete",
        RestoreLevel::Reseeded => "reseeded: the agent has a summary; your history is complete",
        RestoreLevel::Lost => "lost: the agent has none of it; your history is complete",
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
    })
}

fn look(session: &SessionInfo) -> (&'static str, Role) {
    let (word, style) = match session.state {
        SessionState::Live => ("loaded", Role::Good),
        SessionState::Parked => ("sleeping", Role::Dim),
        SessionState::Restoring => ("restoring", Role::Name),
        SessionState::Blocked => ("blocked", Role::Warning),
        SessionState::Lost => ("lost", Role::Bad),
        SessionState::Closed => ("closed", Role::Dim),
    };
    (if session.archived { "archived" } else { word }, style)
}

/// Returns a queued prompt in one line: `fix the tests [+ resource_link]`.
pub(crate) fn queued_prompt(prompt: &QueuedPrompt) -> Text {
    let (words, others) = prompt.parts();
    let words: Vec<&str> = words.split_whitespace().collect();
    let others: Text = others
        .iter()
        .filter_map(|block| block["type"].as_str())
        .map(|kind| text!(" [+ {}]", Untrusted::from(kind)))
        .collect();
    text!("{}{}", Untrusted::from(words.join(" ")), others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session(id: &str, parent: Option<&str>) -> SessionInfo {
        let parent = parent.map(|id| json!({"agent": "demo", "sessionId": id}));
        let session = json!({"sessionId": id, "agent": "demo", "cwd": "/w", "parent": parent,
            "state": "live", "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0,
            "prompts": 1, "seq": 4, "created": 0, "updated": 0});
        serde_json::from_value(session).unwrap()
    }

    #[test]
    fn labels_have_a_column_if_there_are_any_and_room_for_them() {
        let mut one = session("a", None);
        let is_shown =
            |one: &SessionInfo, width| table([one], false, 0, width).to_string().contains("LABELS");
        assert!(!is_shown(&one, None));
        one.labels = vec!["team=infra".into(), "urgent".into()];
        assert!(is_shown(&one, None) && is_shown(&one, Some(80)));
        let narrow = table([&one], false, 0, Some(48)).to_string();
        assert!(!narrow.contains("LABELS") && narrow.contains("DIRECTORY"), "{narrow}");
    }

    #[test]
    fn in_a_tree_each_session_is_below_the_one_that_has_begun_it() {
        let sessions = [
            session("deep", Some("helper")),
            session("helper", Some("lead")),
            session("orphan", Some("deleted")),
            session("lead", None),
            session("other", Some("lead")),
            session("a", Some("b")),
            session("b", Some("a")),
        ];
        let order: Vec<_> = tree(sessions.iter().collect())
            .into_iter()
            .map(|(depth, one)| (depth, one.session_id.raw()))
            .collect();
        let expected = [
            (0, "orphan"),
            (0, "lead"),
            (1, "helper"),
            (2, "deep"),
            (1, "other"),
            (0, "a"),
            (0, "b"),
        ];
        assert_eq!(order, expected);
        let shown = table(&sessions, true, 0, None).to_string();
        assert!(shown.contains("\n└ helper ") && shown.contains("\n  └ deep "), "{shown}");
    }
}
