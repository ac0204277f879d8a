//! The page of keys, from the table of keys.

use acpd_api::Untrusted;
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, text};
use ratatui::layout::Rect;

use super::{AppState, OnScreen};
use crate::canvas::Canvas;
use crate::keymap::{self, Action, KeyPlace};

const TOP_PLACES: &[KeyPlace] =
    &[KeyPlace::Top, KeyPlace::Question, KeyPlace::Line, KeyPlace::Everywhere];
const CHAT_PLACES: &[KeyPlace] = &[
    KeyPlace::Prompt,
    KeyPlace::List,
    KeyPlace::Blocks,
    KeyPlace::Question,
    KeyPlace::Menu,
    KeyPlace::Everywhere,
];
const KEYS_WIDTH: usize = 14;
/// Minimum columns of an entry. Two entries share a row if both fit.
const ENTRY_WIDTH: usize = 40;

pub(super) fn view(
    state: &AppState,
    scroll: usize,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> OnScreen {
    let theme = canvas.theme();
    let columns = (usize::from(area.width) / ENTRY_WIDTH).clamp(1, 2);
    let column = (usize::from(area.width) / columns).min(60);
    let mut lines = Vec::new();
    for place in if state.chat.is_some() { CHAT_PLACES } else { TOP_PLACES } {
        lines.push(Text::of(Style::of(Role::Heading), text!(" {}", title(state, *place))));
        let entries: Vec<Text> = keymap::rows(*place)
            .map(|row| {
                let keys = Untrusted::from(keymap::shown(row.keys, theme.is_unicode));
                let keys = Text::from(&keys).cut(KEYS_WIDTH);
                let gap = Text::repeated(" ", KEYS_WIDTH + 2 - keys.width());
                Text::of(Style::of(Role::Name).strong(), text!("   {}", keys))
                    .and(Role::Plain, text!("{}{}", gap, row.words))
            })
            .collect();
        let rows = entries.len().div_ceil(columns);
        for at in 0..rows {
            let mut line = entries[at].cut(column - 1);
            if let Some(second) = entries.get(at + rows) {
                line += Text::repeated(" ", column.saturating_sub(line.width()));
                line += second;
            }
            lines.push(line);
        }
        lines.push(Text::new());
    }
    let page = usize::from(area.height.saturating_sub(2));
    let scroll = scroll.min(lines.len().saturating_sub(page));
    canvas.line(0, 0, area.width, &Text::of(BOLD, " KEYS"));
    let below = lines.len().saturating_sub(scroll + page);
    let more = (below > 0).then(|| text!("↓ {} more lines · ", below));
    let words = text!("{}{} back", more, state.key_of(KeyPlace::Help, Action::Back));
    canvas.right(0, 0, area.width.saturating_sub(1), &Text::of(Role::Dim, words));
    canvas.rule(1);
    let below = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    canvas.lines(below, lines.into_iter().skip(scroll));
    OnScreen { page, ..OnScreen::default() }
}

fn title(state: &AppState, place: KeyPlace) -> Text {
    match place {
        KeyPlace::Top => "All sessions".into(),
        KeyPlace::Line => "A line that is typed".into(),
        KeyPlace::Question => {
            let key = match &state.chat {
                Some(_) => state.key_of(KeyPlace::Prompt, Action::Blocks),
                None => state.key_of(KeyPlace::Top, Action::Question),
            };
            text!("Question ({} moves there; keys never go to it by themselves)", key)
        }
        KeyPlace::Prompt => "Prompt".into(),
        KeyPlace::List => "A list beside the prompt (/ a command, @ a file)".into(),
        KeyPlace::Blocks => {
            let to = state.key_of(KeyPlace::Prompt, Action::Blocks);
            let back = state.key_of(KeyPlace::Blocks, Action::Back);
            text!("Blocks ({}; {} goes back to the prompt)", to, back)
        }
        KeyPlace::Menu => "A list to choose from".into(),
        KeyPlace::Help => "This page".into(),
        KeyPlace::Everywhere => "Everywhere".into(),
    }
}
