//! A question on the screen.

use acpd_api::{InteractionInfo, Question};
use acpd_view::human::directory;
use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};
use ratatui::layout::Rect;

use super::{Card, Drawn, choices, sheet};
use crate::canvas::{CURSOR, Canvas};

/// Columns before the name of a choice.
const CHOICE: usize = 8;
/// Rows beside what is asked and the choices: the head, a line before the choices, and one below.
const FRAME: usize = 3;

/// The rows that a question needs to be shown whole with its choices.
pub(crate) fn height(question: &InteractionInfo, width: u16) -> usize {
    let rows = sheet::rows(question, usize::from(width).saturating_sub(2)).len();
    rows + choice_rows(question, None, width).len() + FRAME
}

/// The rows of the choices with their places, whole: what "always" remembers is a part of what is decided.
fn choice_rows(
    question: &InteractionInfo,
    chosen: Option<usize>,
    width: u16,
) -> Vec<(usize, Line)> {
    let room = usize::from(width).saturating_sub(CHOICE + 1).max(8);
    let rows = choices(question).into_iter().enumerate().flat_map(|(at, choice)| {
        let is_chosen = chosen == Some(at);
        let style = if is_chosen { Style::of(Role::Plain).strong() } else { Role::Plain.into() };
        let mark = if is_chosen { CURSOR } else { " " };
        let rows = Line::of(style, choice.label).wrap(room).into_iter().enumerate();
        rows.map(move |(row, label)| {
            let mut line = match row {
                0 => Line::of(Style::of(Role::Warning).strong(), text!("   {} ", mark))
                    .and(Style::of(Role::Name).strong(), text!("{}", at + 1))
                    .and(Role::Plain, "  "),
                _ => Line::of(Role::Plain, Text::repeated(" ", CHOICE)),
            };
            line.append(label);
            (at, line)
        })
    });
    rows.collect()
}

/// Draws a question, and returns what of it is on the screen. `who` is the session as people call it.
pub(crate) fn view(
    canvas: &mut Canvas<'_>,
    area: Rect,
    card: &Card,
    question: &InteractionInfo,
    head: &Line,
) -> Option<Drawn> {
    let asked = card.asked.as_ref().filter(|asked| asked.id == question.id)?;
    let rows = sheet::rows(question, usize::from(area.width).saturating_sub(2));
    let choices = choice_rows(question, asked.chosen, area.width);
    let height = usize::from(area.height);
    // Choices matter when somebody is about to choose; before, what is asked matters more.
    let fits = rows.len() + choices.len() + FRAME <= height;
    let has_choices = fits || asked.has_keys;
    let below = if has_choices { choices.len() + 2 } else { usize::from(rows.len() + 1 > height) };
    let page = height.saturating_sub(1 + below).max(1).min(rows.len());
    let most = rows.len() - page;
    let scroll = asked.scroll.min(most);
    let hidden = most - scroll;

    let extent = match (rows.len(), most) {
        (1, 0) => Text::new(),
        (lines, 0) => text!("all {} lines", lines),
        (lines, _) => text!("lines {} to {} of {}", scroll + 1, scroll + page, lines),
    };
    let taken = canvas.right(area.x, area.y, area.width - 1, &Line::of(Role::Dim, extent));
    canvas.line(area.x, area.y, (area.width - 1).saturating_sub(taken + 1), head);
    let mut y = area.y + 1;
    for row in &rows[scroll..scroll + page] {
        canvas.line(area.x + 1, y, area.width.saturating_sub(1), row);
        y += 1;
    }
    if hidden > 0 {
        let keys = if asked.has_keys { ": PgDn" } else { "" };
        let words = text!("    {} more lines below{}", hidden, keys);
        canvas.line(area.x, y, area.width, &Line::of(Style::of(Role::Warning).strong(), words));
    }
    if has_choices {
        if asked.has_keys && asked.chosen.is_none() {
            let words = "nothing is chosen ";
            canvas.right(area.x, y, area.width - 1, &Line::of(Role::Dim, words));
        }
        y += 1;
        // Where not all of them fit, the chosen one is among those that do.
        let room = usize::from(area.bottom().saturating_sub(y));
        let end = choices.iter().rposition(|(at, _)| Some(*at) == asked.chosen).unwrap_or(0) + 1;
        for (_, line) in choices.iter().skip(end.saturating_sub(room)).take(room) {
            canvas.line(area.x, y, area.width, line);
            y += 1;
        }
    }
    Some(Drawn { id: question.id.clone(), is_end: hidden == 0 && area.height > 1, most, page })
}

/// Who asks for what, and where, in a line.
pub(crate) fn asks(question: &InteractionInfo, home: Option<&str>) -> Text {
    let folder = match &question.question {
        Question::Permission { shown: Some(shown), .. } => shown.folder.as_ref(),
        _ => None,
    };
    let place = folder.or(question.cwd.as_ref());
    let place = place.map(|place| text!(", in {}", directory(place, home)));
    text!("{}{}", asks_for(question), place)
}

fn asks_for(question: &InteractionInfo) -> Text {
    let agent = &question.agent;
    match &question.question {
        Question::Permission { shown, tool_kind, .. } => {
            let kind = shown.as_ref().map(|shown| &shown.kind).or(tool_kind.as_ref());
            let wants = match kind.map(acpd_api::Untrusted::raw) {
                Some("execute") => "run",
                Some("edit") => "edit",
                Some("read") => "read",
                Some("delete") => "delete",
                Some("move") => "move",
                Some("search") => "search",
                Some("fetch") => "fetch",
                _ => "do",
            };
            text!("{} asks to {} this", agent, wants)
        }
        Question::Form { .. } => text!("{} asks", agent),
        Question::Url { .. } => text!("{} asks you to open a page", agent),
    }
}
