//! A question on the screen.

use acpd_api::{InteractionInfo, Question};
use acpd_view::human::directory;
use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};
use ratatui::layout::Rect;

use super::form::Filled;
use super::{Card, Choice, Drawn, choices, sheet};
use crate::canvas::{CURSOR, Canvas};

/// Rows beside what is asked and the choices: the head, a line before the choices, and one below.
const FRAME: usize = 3;

/// The rows that a question needs to be shown whole with its choices.
pub(crate) fn height(question: &InteractionInfo, width: u16) -> usize {
    let rows = sheet::rows(question, usize::from(width).saturating_sub(2)).len();
    rows + lines(&choices(question, &Filled::default()), None).0.len() + FRAME
}

/// The lines of the choices, with the headings of fields above the first one of each, and which is the chosen one.
fn lines(choices: &[Choice], chosen: Option<usize>) -> (Vec<Line>, Option<usize>) {
    let (mut lines, mut chosen_line) = (Vec::new(), None);
    for (at, choice) in choices.iter().enumerate() {
        if let Some(heading) = &choice.heading {
            lines.push(Line::of(Style::of(Role::Plain).strong(), text!("     {}", heading)));
        }
        let is_chosen = chosen == Some(at);
        if is_chosen {
            chosen_line = Some(lines.len());
        }
        let style = if is_chosen { Style::of(Role::Plain).strong() } else { Role::Plain.into() };
        let mark = if is_chosen { CURSOR } else { " " };
        // A key has only one digit.
        let number = if at < 9 { text!("{}", at + 1) } else { " ".into() };
        let set = choice.is_set.map(|is_set| if is_set { "[x] " } else { "[ ] " });
        let line = Line::of(Style::of(Role::Warning).strong(), text!("   {} ", mark))
            .and(Style::of(Role::Name).strong(), number)
            .and(style, text!("  {}{}", set, choice.label));
        lines.push(line);
    }
    (lines, chosen_line)
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
    let choices = choices(question, &asked.filled);
    let (choices, chosen_line) = lines(&choices, asked.chosen);
    let height = usize::from(area.height);
    // Choices matter when somebody is about to choose; before, what is asked matters more.
    let fits = rows.len() + choices.len() + FRAME <= height;
    let has_choices = fits || asked.has_keys;
    // A line of what is asked stays, however many choices there are.
    let choosable = choices.len().min(height.saturating_sub(4).max(1));
    let below = if has_choices { choosable + 2 } else { usize::from(rows.len() + 1 > height) };
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
    let mut shown = 0..0;
    if has_choices {
        if asked.has_keys && asked.chosen.is_none() {
            let words = "nothing is chosen ";
            canvas.right(area.x, y, area.width - 1, &Line::of(Role::Dim, words));
        }
        y += 1;
        // What is chosen is always on the screen.
        let skip = chosen_line.map_or(0, |at| (at + 1).saturating_sub(choosable));
        let room = usize::from(area.bottom().saturating_sub(y));
        shown = skip..(skip + choosable.min(room)).min(choices.len());
        for line in &choices[shown.clone()] {
            canvas.line(area.x, y, area.width, line);
            y += 1;
        }
    }
    let (id, is_end) = (question.id.clone(), hidden == 0 && area.height > 1);
    Some(Drawn { id, is_end, most, page, choices: (shown, choices.len()) })
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
