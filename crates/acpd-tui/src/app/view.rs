//! Frames: the page of keys, from the table of keys, a conversation, or the list of sessions.

use acpd_api::Untrusted;
use acpd_view::text::{BOLD, Text};
use acpd_view::{Role, Style, text};
use ratatui::layout::{Position, Rect};

use super::chat::ChatLayout;
use super::{AppState, OnScreen, chat, top};
use crate::canvas::{Canvas, Theme};
use crate::keymap::{self, Action, KeyPlace};

#[derive(Debug, Default)]
pub(crate) struct Cache {
    scroll: usize,
    layout: ChatLayout,
}

const MIN_SIZE: (u16, u16) = (24, 6);

pub(crate) fn view(
    state: &AppState,
    cache: &mut Cache,
    frame: &mut ratatui::Frame<'_>,
) -> OnScreen {
    let area = frame.area();
    let theme = state.scene.theme;
    let mut canvas = Canvas::new(frame.buffer_mut(), theme);
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let words = ["too small:", "acpctl chat --plain", "goes line by line"];
        canvas.lines(area, words.map(|words| Text::of(Role::Warning, words)));
        return OnScreen::default();
    }
    let above = Rect { height: area.height.saturating_sub(1), ..area };
    let (on_screen, cursor): (OnScreen, Option<Position>) = match (state.help, &state.chat) {
        (Some(scroll), _) => (help(state, scroll, &mut canvas, area), None),
        (None, Some(chat)) => {
            (chat::view(state, chat, &mut cache.layout, &mut canvas, above), None)
        }
        (None, None) => top::view(state, &mut cache.scroll, &mut canvas, above),
    };
    if state.help.is_none() {
        canvas.footer(above.bottom(), &footer_keys(state, theme));
    }
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    on_screen
}

fn footer_keys(state: &AppState, theme: Theme) -> Vec<(String, &'static str)> {
    let place = state.place();
    let rows = keymap::rows(place);
    let rows = rows.filter_map(|row| Some((row, row.footer?)));
    let of_top = top::useful(state);
    let rows = rows.filter(|(row, _)| match &state.chat {
        Some(chat) => chat::useful(state, chat, place, row.action),
        None => of_top(place, row.action),
    });
    let first =
        |keys: &str| keymap::shown(keys.split(' ').next().unwrap_or(keys), theme.is_unicode);
    let word = |action, word| match &state.chat {
        Some(chat) => chat::word(chat, action, word),
        None => top::word(state, action, word),
    };
    rows.map(|(row, name)| (first(row.keys), word(row.action, name))).collect()
}

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

fn help(state: &AppState, scroll: usize, canvas: &mut Canvas<'_>, area: Rect) -> OnScreen {
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
            text!("Question ({} goes there; it never takes the keys by itself)", key)
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
