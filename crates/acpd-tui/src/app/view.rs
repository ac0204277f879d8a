//! Frames: the page of keys, a conversation, or the list of sessions.

use acpd_view::Role;
use acpd_view::text::Text;
use ratatui::layout::{Position, Rect};

use super::chat::ChatLayout;
use super::{AppState, OnScreen, chat, help, top};
use crate::canvas::{Canvas, Theme};
use crate::keymap;

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
        (Some(scroll), _) => (help::view(state, scroll, &mut canvas, area), None),
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
    let of_top = top::footer_words(state);
    let key = |row: &keymap::Binding| {
        let word = match &state.chat {
            Some(chat) => chat::footer_word(state, chat, (place, row.action), row.footer?),
            None => of_top(place, row.action, row.footer?),
        };
        let first = row.keys.split(' ').next().unwrap_or(row.keys);
        Some((keymap::shown(first, theme.is_unicode), word?))
    };
    keymap::rows(place).filter_map(key).collect()
}
