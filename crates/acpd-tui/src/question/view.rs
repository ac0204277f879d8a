use std::ops::Range;

use acpd_api::{InteractionInfo, Question, Shown, Untrusted};
use acpd_view::human::directory;
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, text};
use ratatui::layout::Rect;

use super::form::Filled;
use super::{Choice, Drawn, QuestionCard, choices, sheet};
use crate::canvas::{CURSOR, Canvas};

const CHOICE: usize = 8;
/// Rows besides the question and the choices: the head, an empty line, a last line.
const FRAME: usize = 3;

pub(crate) fn height(question: &InteractionInfo, width: u16) -> usize {
    let rows = sheet::rows(question, usize::from(width).saturating_sub(2)).len();
    rows + choice_rows(&choices(question, &Filled::default()), None, width).0.len() + FRAME
}

/// Returns the rows with the index of their choice, and the rows of the chosen one. Choices are
/// never cut: the note on "always" is a part of the decision.
fn choice_rows(
    choices: &[Choice],
    chosen: Option<usize>,
    width: u16,
) -> (Vec<(usize, Text)>, Range<usize>) {
    let room = usize::from(width).saturating_sub(CHOICE + 1).max(8);
    let (mut rows, mut chosen_rows) = (Vec::new(), 0..0);
    for (at, choice) in choices.iter().enumerate() {
        if let Some(heading) = &choice.heading {
            rows.push((at, Text::of(BOLD, text!("     {}", heading))));
        }
        let is_chosen = chosen == Some(at);
        let style = if is_chosen { BOLD } else { Role::Plain.into() };
        let mark = if is_chosen { CURSOR } else { " " };
        // A key is one digit.
        let number = if at < 9 { text!("{}", at + 1) } else { " ".into() };
        let head = Text::of(Style::of(Role::Warning).strong(), text!("   {} ", mark))
            .and(Style::of(Role::Name).strong(), number)
            .and(Role::Plain, "  ");
        let indent = Text::of(Role::Plain, Text::repeated(" ", CHOICE));
        let set = choice.is_set.map(|is_set| if is_set { "[x] " } else { "[ ] " });
        let label = Text::of(style, text!("{}{}", set, choice.label)).wrap(room);
        let start = rows.len();
        rows.extend(label.into_iter().enumerate().map(|(row, label)| {
            let start = if row == 0 { head.clone() } else { indent.clone() };
            (at, start + label)
        }));
        let note = choice.note.iter().flat_map(|note| Text::of(Role::Dim, note).wrap(room));
        rows.extend(note.map(|note| (at, indent.clone() + note)));
        if is_chosen {
            chosen_rows = start..rows.len();
        }
    }
    (rows, chosen_rows)
}

pub(crate) fn view(
    canvas: &mut Canvas<'_>,
    area: Rect,
    card: &QuestionCard,
    question: &InteractionInfo,
    head: &Text,
) -> Option<Drawn> {
    if card.id() != Some(&question.id) {
        return None;
    }
    let rows = sheet::rows(question, usize::from(area.width).saturating_sub(2));
    let all = choices(question, &card.filled);
    let (choices, chosen) = choice_rows(&all, card.chosen, area.width);
    let height = usize::from(area.height);
    // Until the question has the keys, its text gets the room.
    let fits = rows.len() + choices.len() + FRAME <= height;
    let has_choices = fits || card.has_keys;
    // At least one line of the question stays.
    let choosable = choices.len().min(height.saturating_sub(3).max(1));
    let below = if has_choices { choosable + 2 } else { usize::from(rows.len() + 1 > height) };
    let page = height.saturating_sub(1 + below).max(1).min(rows.len());
    let most = rows.len() - page;
    let scroll = card.scroll.min(most);
    let hidden = most - scroll;

    let extent = match (rows.len(), most) {
        (1, 0) => Text::new(),
        (lines, 0) => text!("all {} lines", lines),
        (lines, _) => text!("lines {} to {} of {}", scroll + 1, scroll + page, lines),
    };
    let taken = canvas.right(area.x, area.y, area.width - 1, &Text::of(Role::Dim, extent));
    canvas.line(area.x, area.y, (area.width - 1).saturating_sub(taken + 1), head);
    let mut y = area.y + 1;
    for row in &rows[scroll..scroll + page] {
        canvas.line(area.x + 1, y, area.width.saturating_sub(1), row);
        y += 1;
    }
    if hidden > 0 {
        let keys = if card.has_keys { ": PgDn" } else { "" };
        let words = text!("    {} more lines below{}", hidden, keys);
        canvas.line(area.x, y, area.width, &Text::of(Style::of(Role::Warning).strong(), words));
    }
    let mut shown = 0..0;
    if has_choices {
        if card.has_keys && card.chosen.is_none() {
            let words = "nothing is chosen ";
            canvas.right(area.x, y, area.width - 1, &Text::of(Role::Dim, words));
        }
        y += 1;
        // The beginning of the chosen one is always visible.
        let skip = chosen.end.saturating_sub(choosable).min(chosen.start);
        let room = usize::from(area.bottom().saturating_sub(y));
        shown = skip..(skip + choosable.min(room)).min(choices.len());
        for row in shown.clone() {
            let is_cut = row + 1 == shown.end && row >= chosen.start && row + 1 < chosen.end;
            let more = if is_cut { "…" } else { "" };
            let line = choices[row].1.clone().and(Role::Plain, more);
            canvas.line(area.x, y, area.width, &line);
            y += 1;
        }
    }
    // The choices without hidden rows.
    let place = |row: usize| choices.get(row).map(|(at, _)| *at);
    let above = shown.start.checked_sub(1).and_then(place);
    let whole = above.map_or(0, |at| at + 1)..place(shown.end).unwrap_or(all.len());
    let (id, is_end) = (question.id.clone(), hidden == 0 && area.height > 1);
    Some(Drawn { id, is_end, most, page, choices: whole })
}

/// Describes the asker, the request and its directory.
pub fn asks(question: &InteractionInfo, home: Option<&str>) -> Text {
    let agent = &question.agent;
    let (asks, folder) = match &question.question {
        Question::Permission { shown, tool_kind, .. } => {
            let verb = verb(shown.as_deref(), tool_kind.as_ref());
            let folder = shown.as_ref().and_then(|shown| shown.folder.as_ref());
            (text!("{} asks to {} this", agent, verb), folder)
        }
        Question::Form { .. } => (text!("{} asks", agent), None),
        Question::Url { .. } => (text!("{} asks you to open a page", agent), None),
    };
    let place = folder.or(question.cwd.as_ref());
    text!("{}{}", asks, place.map(|place| text!(", in {}", directory(place, home))))
}

pub(crate) fn verb(shown: Option<&Shown>, tool_kind: Option<&Untrusted>) -> &'static str {
    const VERBS: [&str; 6] = ["edit", "read", "delete", "move", "search", "fetch"];
    let kind = shown.map(|shown| &shown.kind).or(tool_kind).map_or("", Untrusted::raw);
    let verb = VERBS.into_iter().find(|verb| *verb == kind);
    verb.unwrap_or(if kind == "execute" { "run" } else { "do" })
}
