use acpd_api::{SessionInfo, TurnState, Untrusted};
use acpd_view::human::directory;
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, text};
use ratatui::layout::{Position, Rect};

use super::rows::{age, agent, describe, details, folder, mark, name, queued};
use super::{TopScreen, Typing};
use crate::app::{AWAY_AFTER_MS, AppState, OnScreen, Presence, Spot};
use crate::canvas::{CURSOR, Canvas, DOT};
use crate::fleet::{Row, RowState, Section};
use crate::keymap::{Action, KeyPlace};
use crate::question;

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
            let hosts = state.fleet.watched.hosts.iter().filter(|host| host.error.is_some());
            let away: Vec<_> = hosts.map(|host| Text::from(&host.name)).collect();
            if away.is_empty() {
                Text::of(Role::Dim, state.today.words().unwrap_or_default())
            } else {
                Text::of(Role::Warning, text!("not reachable: {}", Text::join(away, ", ")))
            }
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
    // The index of a row, or a heading.
    let mut lines: Vec<Result<usize, &'static str>> = Vec::with_capacity(rows.len() + 3);
    for (at, row) in rows.iter().enumerate() {
        if at == 0 || rows[at - 1].section != row.section {
            lines.push(Err(match row.section {
                Section::NeedsYou => " NEEDS YOU",
                Section::Working => " WORKING",
                Section::Recent => " RECENT",
            }));
        }
        lines.push(Ok(at));
    }
    let selected = lines.iter().position(|line| *line == Ok(state.top.at)).unwrap_or(0);
    // The heading above the first row stays with it.
    let first = if selected <= 1 { 0 } else { selected };
    let most = lines.len().saturating_sub(height);
    *scrolled = (*scrolled).min(first).max((selected + 1).saturating_sub(height)).min(most);
    let columns = columns(rows, usize::from(area.width), state.scene.home.as_deref());
    let shown = lines.iter().copied().skip(*scrolled).take(height);
    let mut spots = Vec::new();
    for (y, line) in (area.y..).zip(shown) {
        match line {
            Ok(row) => {
                spots.push((y, Spot::Row(row)));
                draw_row(state, &rows[row], row == state.top.at, columns, canvas, area, y);
            }
            Err(words) => {
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

/// Returns the words of the footer; none for a key without a use.
pub(in crate::app) fn footer_words(
    state: &AppState,
) -> impl Fn(KeyPlace, Action, &'static str) -> Option<&'static str> {
    let rows = state.fleet.rows(state.top.filter.text(), state.now);
    let row = rows.get(state.top.at);
    let session: Option<&SessionInfo> = row.and_then(|row| row.session);
    let asks = row.is_some_and(|row| matches!(row.what, RowState::Question(_)));
    let works = session.is_some_and(|session| session.turn.state != TurnState::Idle);
    let has_session = session.is_some();
    let has_more = state.on_screen.question.as_ref().is_some_and(|drawn| drawn.most > 0);
    let (confirms, steers, chooses) = match &state.top.typing {
        Some(Typing::Prompt(session, _)) => (Some("send"), state.is_running(session), false),
        Some(Typing::New(_)) => (Some("begin"), false, state.agents().nth(1).is_some()),
        Some(Typing::Filter) => (Some("keep"), false, false),
        Some(Typing::Rename(..)) => (Some("rename"), false, false),
        None => (None, false, false),
    };
    move |place, action, word| {
        let is_useful = match (place, action) {
            (KeyPlace::Line, Action::Steer) => steers,
            (KeyPlace::Line, Action::NextAgent) => chooses,
            (KeyPlace::Top, Action::Question) => asks,
            (KeyPlace::Top, Action::Cancel) => works,
            (KeyPlace::Top, Action::Open | Action::Prompt) => has_session,
            (KeyPlace::Question, Action::PageDown) => has_more,
            _ => true,
        };
        let word = confirms.filter(|_| action == Action::Confirm).unwrap_or(word);
        is_useful.then_some(word)
    }
}
