//! The screen of the list, and the texts of its rows.

use acpd_api::{
    DoingKind, InteractionInfo, Question, SessionInfo, SessionState, TurnState, Untrusted,
};
use acpd_view::human::{self, directory};
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, about, text};
use ratatui::layout::{Position, Rect};

use super::{TopScreen, Typing};
use crate::app::{AWAY_AFTER_MS, AppState, OnScreen, Presence, Spot};
use crate::canvas::{CURSOR, Canvas, DOT};
use crate::fleet::{Row, RowState, Section, shown};
use crate::keymap::{Action, KeyPlace};
use crate::question::{self, verb};

/// Maximum columns of names, agents and directories.
const MAX_WIDTHS: [usize; 3] = [24, 12, 32];
const AGE: usize = 4;
const MIN_LIST_ROWS: u16 = 5;

/// Fits the columns of names, agents and directories to their contents, within half of the screen.
fn columns(rows: &[Row<'_>], width: usize, home: Option<&str>) -> [usize; 3] {
    let widest = |of: &dyn Fn(&Row<'_>) -> Text| rows.iter().map(|row| of(row).width()).max();
    let room = width.saturating_sub(3 + AGE + 3) / 2;
    let name = widest(&name).unwrap_or(0).clamp(8, MAX_WIDTHS[0]).min(room.max(8));
    let left = room.saturating_sub(name + 2);
    let agent = widest(&agent).unwrap_or(0).min(MAX_WIDTHS[1]);
    let agent = if agent + 2 <= left { agent } else { 0 };
    let left = left.saturating_sub(agent + 2);
    let wanted = widest(&|row| folder(row, home)).unwrap_or(0).min(MAX_WIDTHS[2]);
    let folder = if left >= wanted.min(8) { wanted.min(left) } else { 0 };
    [name, agent, folder]
}

pub(in crate::app) fn view(
    state: &AppState,
    scrolled: &mut usize,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> (OnScreen, Option<Position>) {
    let TopScreen { filter, at, card, .. } = &state.top;
    let rows = state.fleet.rows(filter.text(), state.now);
    let selected = rows.get(*at);
    let (width, home) = (usize::from(area.width), state.scene.home.as_deref());
    // Rows that need the user count even if the filter hides them.
    match filter.text().trim() {
        "" => head(state, &rows, canvas, area),
        _ => head(state, &state.fleet.rows("", state.now), canvas, area),
    }

    // From the bottom: input or a message, the selected row, the list.
    let footer = area.bottom();
    let below = u16::from(state.top.typing.is_some() || state.flash.is_some() || area.height > 15);
    let room = area.height.saturating_sub(2 + below);
    let question = selected.and_then(Row::question);
    let wanted = match (question, selected) {
        (Some(question), _) => question::height(question, area.width),
        (None, Some(row)) => details(row, state.now, home).len(),
        (None, None) => 0,
    };
    let most = if card.has_keys() { room.saturating_sub(MIN_LIST_ROWS - 2) } else { room / 2 };
    let least = if question.is_some() { 3 } else { 1 };
    let pane =
        u16::try_from(wanted).unwrap_or(u16::MAX).min(most.max(least)).min(room.saturating_sub(1));
    let ruler = footer.saturating_sub(below + pane + 1);
    let list = Rect { y: area.y + 1, height: ruler.saturating_sub(area.y + 1), ..area };

    let (page, more, spots) = draw_list(state, &rows, scrolled, canvas, list);
    canvas.rule(ruler);
    if more > 0 {
        let words = text!(" {} more: {}, or / to filter ", more, "↓");
        canvas.right(area.x, ruler, area.width.saturating_sub(4), &Text::of(Role::Dim, words));
    }
    let pane = Rect { y: ruler + 1, height: pane, ..area };
    let mut drawn = None;
    if let (Some(question), Some(row)) = (question, selected) {
        let head = Text::of(BOLD, text!(" {}: ", name(row))).and(
            Style::of(Role::Warning).strong(),
            question::asks(question, state.scene.home.as_deref()),
        );
        drawn = question::view(canvas, pane, card, question, &head);
    } else if let Some(row) = selected {
        let lines = details(row, state.now, home);
        let lines = lines.iter().flat_map(|line| line.wrap(width.saturating_sub(2)));
        let pane = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..pane };
        canvas.lines(pane, lines);
    }
    let cursor = below_pane(state, canvas, footer.saturating_sub(1));
    (OnScreen { question: drawn, page, spots, ..OnScreen::default() }, cursor)
}

fn head(state: &AppState, rows: &[Row<'_>], canvas: &mut Canvas<'_>, area: Rect) {
    let count = |section| rows.iter().filter(|row| row.section == section).count();
    let needs = count(Section::NeedsYou);
    let mut head = Text::of(BOLD, " acpd");
    if state.fleet.is_known {
        let (style, words) = match needs {
            0 => (Role::Dim.into(), "nothing needs you".into()),
            1 => (Style::of(Role::Warning).strong(), "1 needs you".into()),
            _ => (Style::of(Role::Warning).strong(), text!("{} need you", needs)),
        };
        let working = match count(Section::Working) {
            1 => text!("{}1 works", DOT),
            working => text!("{}{} work", DOT, working),
        };
        let rest = text!("{}{} rest", DOT, count(Section::Recent));
        head = head
            .and(Role::Dim, DOT)
            .and(style, words)
            .and(Role::Plain, working)
            .and(Role::Dim, rest);
    }
    let presence = match &state.presence {
        Presence::Connecting => Text::of(Role::Dim, "connecting"),
        Presence::AwaySince(since) if state.now >= since + AWAY_AFTER_MS => {
            Text::of(Role::Warning, "acpd is not running, reconnecting")
        }
        Presence::There | Presence::AwaySince(_) => {
            Text::of(Role::Dim, state.today.words().unwrap_or_default())
        }
        Presence::Stopped => Text::of(Role::Bad, state.start_hint(KeyPlace::Top)),
        Presence::Gone(why) => Text::of(Role::Bad, why),
    };
    let taken = canvas.right(area.x, area.y, area.width.saturating_sub(1), &presence);
    canvas.line(area.x, area.y, area.width.saturating_sub(taken + 1), &head);
}

/// Returns the visible rows, the number of rows below them, and the click targets.
fn draw_list(
    state: &AppState,
    rows: &[Row<'_>],
    scrolled: &mut usize,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> (usize, usize, Vec<(u16, Spot)>) {
    let height = usize::from(area.height);
    if rows.is_empty() {
        let key = |action| state.key_of(KeyPlace::Top, action);
        let words = match (state.fleet.is_known, state.top.filter.text()) {
            (false, _) => Text::default(),
            (true, "") => text!("no sessions yet: {} begins one here", key(Action::New)),
            (true, _) => text!("nothing fits; {} shows all sessions again", key(Action::Back)),
        };
        canvas.line(
            area.x + 3,
            area.y + 1,
            area.width.saturating_sub(3),
            &Text::of(Role::Dim, words),
        );
        return (1, 0, Vec::new());
    }
    let mut lines: Vec<Option<usize>> = Vec::with_capacity(rows.len() + 3);
    for (at, row) in rows.iter().enumerate() {
        if at == 0 || rows[at - 1].section != row.section {
            lines.push(None);
        }
        lines.push(Some(at));
    }
    let selected = lines.iter().position(|line| *line == Some(state.top.at)).unwrap_or(0);
    // The heading above the first row stays with it.
    let first = if selected <= 1 { 0 } else { selected };
    let most = lines.len().saturating_sub(height);
    *scrolled = (*scrolled).min(first).max((selected + 1).saturating_sub(height)).min(most);
    let columns = columns(rows, usize::from(area.width), state.scene.home.as_deref());
    let shown = lines.iter().enumerate().skip(*scrolled).take(height);
    let mut spots = Vec::new();
    for (y, (at, line)) in (area.y..).zip(shown) {
        match line {
            Some(row) => {
                spots.push((y, Spot::Row(*row)));
                draw_row(state, &rows[*row], *row == state.top.at, columns, canvas, area, y);
            }
            None => {
                let words = match lines.get(at + 1).copied().flatten().map(|row| rows[row].section)
                {
                    Some(Section::NeedsYou) => " NEEDS YOU",
                    Some(Section::Working) => " WORKING",
                    _ => " RECENT",
                };
                canvas.line(area.x, y, area.width, &Text::of(Style::of(Role::Dim).strong(), words));
            }
        }
    }
    let below = lines.len().saturating_sub(*scrolled + height);
    (height.saturating_sub(1).max(1), below, spots)
}

fn draw_row(
    state: &AppState,
    row: &Row<'_>,
    is_selected: bool,
    columns: [usize; 3],
    canvas: &mut Canvas<'_>,
    area: Rect,
    y: u16,
) {
    let home = state.scene.home.as_deref();
    let strong = |role| if is_selected { Style::of(role).strong() } else { role.into() };
    let (sign, style) = mark(row);
    let cursor = if is_selected { CURSOR } else { " " };
    let mut line = Text::of(Style::of(Role::Name).strong(), cursor).and(style, sign);
    let age = age(state.now.saturating_sub(row.since));
    let age = if row.since == 0 { Text::new() } else { age };
    let before = Text::repeated(" ", AGE.saturating_sub(age.width()));
    let mut at = 2;
    for (width, role, text) in [
        (columns[0], Role::Plain, name(row)),
        (columns[1], Role::Plain, agent(row)),
        (columns[2], Role::Name, folder(row, home).cut_middle(columns[2])),
        (AGE, Role::Dim, before + age),
    ] {
        if width > 0 {
            let gap = Text::repeated(" ", at - line.width() + 1);
            line = line.and(Role::Plain, gap).and(strong(role), text.cut(width));
            at += width + 2;
        }
    }
    let end = Text::repeated(" ", (at + 1).saturating_sub(line.width()));
    line = line.and(Role::Plain, end);
    // Queued prompts are visible next to any activity.
    let queued = queued(row);
    let room = usize::from(area.width).saturating_sub(1 + line.width() + queued.width());
    line += describe(row, state.now).cut(room) + queued;
    canvas.line(area.x, y, area.width.saturating_sub(1), &line);
    if is_selected {
        canvas.select(Rect { y, height: 1, ..area });
    }
}

/// Draws the input line or a message. Returns the cursor's position.
fn below_pane(state: &AppState, canvas: &mut Canvas<'_>, y: u16) -> Option<Position> {
    let width = canvas.buffer().area.width;
    let mut input = &state.top.input;
    let label = match &state.top.typing {
        Some(Typing::Filter) => {
            input = &state.top.filter;
            " / ".into()
        }
        Some(Typing::Prompt(_, who)) => text!(" prompt {} > ", who.cut(24)),
        Some(Typing::New(agent)) => {
            let cwd = Untrusted::from(state.scene.cwd.as_str());
            let folder = directory(&cwd, state.scene.home.as_deref()).cut_middle(24);
            text!(" new with {} in {} > ", agent, folder)
        }
        Some(Typing::Rename(_, who)) => text!(" new name of {} > ", who.cut(24)),
        None => {
            let line = match (&state.flash, state.top.filter.text()) {
                (Some((flash, _)), _) => Text::from(" ") + flash,
                (None, "") => return None,
                (None, _) => {
                    let words = state.top.filter.shown(40).0;
                    let key = state.key_of(KeyPlace::Top, Action::Back);
                    Text::of(Role::Dim, text!(" only what fits: {}  ({}: all)", words, key))
                }
            };
            canvas.line(0, y, width, &line);
            return None;
        }
    };
    let x = u16::try_from(label.width()).unwrap_or(0);
    canvas.line(0, y, width, &Text::of(Style::of(Role::Name).strong(), label));
    let (shown, column) = input.shown(usize::from(width.saturating_sub(x + 1)));
    canvas.line(x, y, width.saturating_sub(x), &Text::of(Role::Plain, shown));
    Some(Position::new(x + u16::try_from(column).unwrap_or(0), y))
}

pub(in crate::app) fn word(state: &AppState, action: Action, word: &'static str) -> &'static str {
    match (&state.top.typing, action) {
        (Some(Typing::Filter), Action::Confirm) => "keep",
        (Some(Typing::Prompt(..)), Action::Confirm) => "send",
        (Some(Typing::New(_)), Action::Confirm) => "begin",
        (Some(Typing::Rename(..)), Action::Confirm) => "rename",
        _ => word,
    }
}

pub(in crate::app) fn useful(state: &AppState) -> impl Fn(KeyPlace, Action) -> bool {
    let rows = state.fleet.rows(state.top.filter.text(), state.now);
    let row = rows.get(state.top.at);
    let session: Option<&SessionInfo> = row.and_then(|row| row.session);
    let asks = row.is_some_and(|row| matches!(row.what, RowState::Question(_)));
    let works = session.is_some_and(|session| session.turn.state != TurnState::Idle);
    let has_session = session.is_some();
    let has_more = state.on_screen.question.as_ref().is_some_and(|drawn| drawn.most > 0);
    let (steers, chooses) = match &state.top.typing {
        Some(Typing::Prompt(session, _)) => (state.is_running(session), false),
        Some(Typing::New(_)) => (false, state.agents().nth(1).is_some()),
        Some(Typing::Filter | Typing::Rename(..)) | None => (false, false),
    };
    move |place, action| match (place, action) {
        (KeyPlace::Line, Action::Steer) => steers,
        (KeyPlace::Line, Action::NextAgent) => chooses,
        (KeyPlace::Top, Action::Question) => asks,
        (KeyPlace::Top, Action::Cancel) => works,
        (KeyPlace::Top, Action::Open | Action::Prompt) => has_session,
        (KeyPlace::Question, Action::PageDown) => has_more,
        _ => true,
    }
}

/// Returns the mark of a row. It shows the state without colours.
fn mark(row: &Row<'_>) -> (&'static str, Style) {
    match row.what {
        RowState::Question(_) => ("?", Style::of(Role::Warning).strong()),
        RowState::Login(..) => ("@", Style::of(Role::Warning).strong()),
        RowState::Interrupted | RowState::Blocked => ("!", Style::of(Role::Bad).strong()),
        RowState::Works { silent: None } => ("*", Style::of(Role::Good).strong()),
        RowState::Works { silent: Some(_) } => ("~", Role::Dim.into()),
        RowState::Rests => (" ", Role::Plain.into()),
    }
}

fn name(row: &Row<'_>) -> Text {
    match (row.session, row.what) {
        (_, RowState::Login(agent, _)) => Text::from(&agent.name),
        (Some(session), _) => shown(session),
        (None, RowState::Question(question)) => {
            question.name.as_ref().map(Text::from).unwrap_or_default()
        }
        _ => Text::new(),
    }
}

fn agent(row: &Row<'_>) -> Text {
    match (row.session, row.what) {
        (_, RowState::Login(..)) => Text::new(),
        (Some(session), _) => Text::from(&session.agent),
        (None, RowState::Question(question)) => Text::from(&question.agent),
        _ => Text::new(),
    }
}

fn folder(row: &Row<'_>, home: Option<&str>) -> Text {
    let asked = row.question().and_then(|question| question.cwd.as_ref());
    let cwd = row.session.map(|session| &session.cwd).or(asked);
    cwd.map(|cwd| directory(cwd, home)).unwrap_or_default()
}

/// Returns an age in one unit, at most four columns wide.
fn age(ms: u64) -> Text {
    let age = human::duration(ms.min(999 * 86_400_000));
    Untrusted::from(age.as_str().split(' ').next().unwrap_or_default()).into()
}

fn describe(row: &Row<'_>, now: u64) -> Text {
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

fn queued(row: &Row<'_>) -> Text {
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

fn doing(session: &SessionInfo, now: u64) -> Text {
    if let (Some(until), TurnState::Idle) = (session.limited_until, session.turn.state) {
        let left = human::duration(until.saturating_sub(now));
        return Text::of(Role::Warning, text!("waits {} for the end of a usage limit", left));
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
fn details(row: &Row<'_>, now: u64, home: Option<&str>) -> Vec<Text> {
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
