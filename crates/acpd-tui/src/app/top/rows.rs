//! Texts of the rows of `top`.

use acpd_api::{
    DoingKind, InteractionInfo, Question, SessionInfo, SessionState, TurnState, Untrusted,
};
use acpd_view::about;
use acpd_view::human::{self, directory};
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, text};

use crate::canvas::DOT;
use crate::fleet::{Row, RowState, shown};
use crate::question::verb;

/// Returns the mark of a row. It shows the state without colours.
pub(super) fn mark(row: &Row<'_>) -> (&'static str, Style) {
    match row.what {
        RowState::Question(_) => ("?", Style::of(Role::Warning).strong()),
        RowState::Login(..) => ("@", Style::of(Role::Warning).strong()),
        RowState::Interrupted | RowState::Blocked => ("!", Style::of(Role::Bad).strong()),
        RowState::Works { silent: None } => ("*", Style::of(Role::Good).strong()),
        RowState::Works { silent: Some(_) } => ("~", Role::Dim.into()),
        RowState::Rests => (" ", Role::Plain.into()),
    }
}

pub(super) fn name(row: &Row<'_>) -> Text {
    match (row.session, row.what) {
        (_, RowState::Login(agent, _)) => Text::from(&agent.name),
        (Some(session), _) => shown(session),
        (None, _) => text!("{}", row.question().and_then(|question| question.name.as_ref())),
    }
}

pub(super) fn agent(row: &Row<'_>) -> Text {
    match (row.session, row.what) {
        (_, RowState::Login(..)) => Text::new(),
        (Some(session), _) => Text::from(&session.agent),
        (None, _) => text!("{}", row.question().map(|question| &question.agent)),
    }
}

pub(super) fn folder(row: &Row<'_>, home: Option<&str>) -> Text {
    let asked = row.question().and_then(|question| question.cwd.as_ref());
    let cwd = row.session.map(|session| &session.cwd).or(asked);
    cwd.map(|cwd| directory(cwd, home)).unwrap_or_default()
}

/// Returns an age in one unit, at most four columns wide.
pub(super) fn age(ms: u64) -> Text {
    let age = human::duration(ms.min(999 * 86_400_000));
    Untrusted::from(age.as_str().split(' ').next().unwrap_or_default()).into()
}

pub(super) fn describe(row: &Row<'_>, now: u64) -> Text {
    match (row.what, row.session) {
        (RowState::Question(question), _) => asked(question),
        (RowState::Login(_, 0), _) => Text::of(Role::Warning, "wants a login"),
        (RowState::Login(_, 1), _) => {
            Text::of(Role::Warning, text!("wants a login{}1 session waits", DOT))
        }
        (RowState::Login(_, waits), _) => {
            Text::of(Role::Warning, text!("wants a login{}{} sessions wait", DOT, waits))
        }
        (RowState::Interrupted, Some(session)) => {
            let reason = session.turn.reason.as_ref().map(|reason| text!(": {}", reason));
            let what = match session.turn.last.as_ref().map(Untrusted::raw) {
                Some("outcome_unknown") => "the prompt may not have arrived",
                Some("unwedged") => "the agent hung and was stopped",
                _ => "interrupted",
            };
            Text::of(Role::Bad, text!("{}{}", what, reason))
        }
        (RowState::Blocked, Some(session)) => {
            let reason = session.reason.as_ref().map_or("blocked".into(), Text::from);
            Text::of(Role::Bad, reason)
        }
        (RowState::Works { silent: Some(silent) }, _) => {
            Text::of(Role::Dim, text!("silent for {}", human::duration(silent)))
        }
        (RowState::Works { silent: None }, Some(session)) => doing(session, now),
        (_, Some(session)) => rests(session),
        (_, None) => Text::new(),
    }
}

pub(super) fn queued(row: &Row<'_>) -> Text {
    match row.session.map_or(0, |session| session.queued) {
        0 => Text::new(),
        waits => Text::of(Role::Dim, text!("{}{} queued", DOT, human::counted(waits, "prompt"))),
    }
}

fn asked(question: &InteractionInfo) -> Text {
    let (kind, what) = match &question.question {
        Question::Permission { title, subject, shown, tool_kind, .. } => {
            let kind = verb(shown.as_deref(), tool_kind.as_ref());
            let first = shown.as_ref().and_then(|shown| shown.commands.first());
            let what = match first {
                Some(command) => in_one_line(command),
                None => {
                    let what = subject.as_ref().or(title.as_ref());
                    what.map(|what| without_verb(kind, what)).unwrap_or_default()
                }
            };
            (kind, what)
        }
        Question::Form { message, .. } => ("form", Text::from(message)),
        Question::Url { message, url } => ("open", about::page(message, url)),
    };
    Text::of(Role::Dim, text!("{:<5} ", kind)).and(Role::Plain, what)
}

/// Removes a first word that repeats the verb.
fn without_verb(verb: &str, what: &Untrusted) -> Text {
    match what.raw().split_once(' ') {
        Some((first, rest)) if first.eq_ignore_ascii_case(verb) => {
            Text::from(&Untrusted::from(rest.trim_start()))
        }
        _ => Text::from(what),
    }
}

fn in_one_line(command: &Untrusted) -> Text {
    let mut lines = command.raw().trim_end().split('\n');
    let first = Untrusted::from(lines.next().unwrap_or_default());
    match lines.count() {
        0 => Text::from(first.verbatim()),
        more => text!("{} +{}", first.verbatim(), human::counted(more, "line")),
    }
}

pub(super) fn doing(session: &SessionInfo, now: u64) -> Text {
    if let (Some(until), TurnState::Idle) = (session.limited_until, session.turn.state) {
        let left = human::duration(until.saturating_sub(now));
        return Text::of(Role::Warning, text!("waits {} for the end of a usage limit", left));
    }
    if let (TurnState::Idle, [work, more @ ..]) = (session.turn.state, &session.background[..]) {
        let more = (!more.is_empty()).then(|| text!(" +{}", more.len()));
        let said = text!("{}{}", work.name(), more);
        return Text::of(Role::Dim, "in the background: ").and(Role::Plain, said);
    }
    let Some(doing) = &session.doing else {
        let words = match (session.state, session.turn.state) {
            (SessionState::Restoring, _) => "comes back",
            (_, TurnState::Idle) => "waits for its turn",
            (_, TurnState::Working) => "works",
            (_, TurnState::NeedsAction) => "waits for an answer",
        };
        return Text::of(Role::Plain, words);
    };
    let said = match doing.kind {
        DoingKind::Command => Text::from(&doing.text),
        _ => plain(&doing.text),
    };
    let after = |words: &'static str| {
        let said = if said.is_empty() { Text::new() } else { text!(": {}", said) };
        Text::of(Role::Dim, words).and(Role::Plain, said)
    };
    match doing.kind {
        DoingKind::Starting => after("starts"),
        DoingKind::Thinking => Text::of(Role::Dim, "thinks"),
        DoingKind::Writing => after("writes"),
        DoingKind::Command => Text::of(Role::Dim, "$ ").and(Role::Plain, said),
        DoingKind::Waiting => after("waits for an answer"),
        DoingKind::Tool | DoingKind::Other if !said.is_empty() => Text::of(Role::Plain, said),
        DoingKind::Tool | DoingKind::Other => Text::of(Role::Plain, "works"),
    }
}

fn cost(session: &SessionInfo) -> Option<Text> {
    session.usage.as_ref()?.cost.as_ref().map(human::cost)
}

fn rests(session: &SessionInfo) -> Text {
    let last = session.turn.last.as_ref().map(Untrusted::raw);
    let (style, word) = match (session.state, last) {
        (SessionState::Lost, _) => (Role::Bad.into(), "lost".into()),
        (SessionState::Blocked, _) => (Role::Warning.into(), "waits for the login".into()),
        (_, Some("end_turn")) => (Style::of(Role::Dim), Text::from("done")),
        (_, Some("interrupted" | "unwedged")) => (Role::Bad.into(), "interrupted".into()),
        (_, Some("error")) => (Role::Bad.into(), "failed".into()),
        (_, Some("refusal")) => (Role::Warning.into(), "refused".into()),
        (_, Some(_)) => {
            (Role::Dim.into(), session.turn.last.as_ref().map(Text::from).unwrap_or_default())
        }
        (_, None) => (Role::Dim.into(), "new".into()),
    };
    let line = Text::of(style, word);
    let line = match cost(session) {
        Some(cost) => line.and(Role::Dim, text!("{}{}", DOT, cost)),
        None => line,
    };
    match &session.title {
        Some(title) => line.and(Role::Dim, DOT).and(Role::Plain, plain(title)),
        None => line,
    }
}

fn plain(text: &Untrusted) -> Text {
    let bare = text.raw().trim_start_matches(['#', ' ']).replace("**", "").replace('`', "");
    Text::from(&Untrusted::from(bare))
}

/// Describes a row without a question.
pub(super) fn details(row: &Row<'_>, now: u64, home: Option<&str>) -> Vec<Text> {
    if let RowState::Login(agent, _) = row.what {
        let hint = agent.auth.hint.as_ref().or(agent.hint.as_ref()).or(agent.reason.as_ref());
        let head = Text::of(BOLD, &agent.title).and(Role::Plain, text!(" wants a login"));
        return std::iter::once(head)
            .chain(hint.map(|hint| Text::of(Role::Warning, hint)))
            .collect();
    }
    let Some(session) = row.session else { return Vec::new() };
    let mut head = Text::of(BOLD, shown(session));
    if let Some(title) = &session.title {
        head = head.and(Role::Plain, text!("{}{}", DOT, plain(title)));
    }
    if let Some(parent) = &session.parent {
        head = head.and(Role::Dim, text!("{}begun by an agent, in {}", DOT, parent.session_id));
    }
    let place = text!("{}{}{}", session.agent, DOT, directory(&session.cwd, home));
    let mut facts = vec![match session.state {
        SessionState::Live => text!("live"),
        SessionState::Parked => text!("on disk"),
        SessionState::Restoring => text!("comes back"),
        SessionState::Blocked => text!("blocked"),
        SessionState::Lost => text!("lost"),
        SessionState::Closed => text!("closed"),
    }];
    facts.push(human::counted(session.prompts, "prompt"));
    if session.queued > 0 {
        facts.push(text!("{} queued", session.queued));
    }
    facts.extend(cost(session));
    if session.clients > 0 {
        facts.push(text!("{} here", session.clients));
    }
    if session.turn.state != TurnState::Idle {
        let since = human::duration(now.saturating_sub(session.turn.since));
        facts.push(text!("works for {}", since));
    } else if session.updated > 0 {
        let ago = human::duration(now.saturating_sub(session.updated));
        facts.push(text!("used {} ago", ago));
    }
    if session.name.is_some() {
        facts.push(Text::from(&session.session_id));
    }
    let mut lines =
        vec![head, Text::of(Role::Name, place), Text::of(Role::Dim, Text::join(facts, DOT))];
    if session.turn.state != TurnState::Idle {
        lines.push(doing(session, now));
    }
    lines.extend(session.reason.iter().map(|reason| Text::of(Role::Warning, reason)));
    lines.extend(session.hint.iter().map(|hint| Text::of(Role::Dim, hint)));
    lines
}
