//! What is on the screen.

use ratatui::layout::{Position, Rect};

use super::chat::Layout;
use super::{OnScreen, State, chat, help, top};
use crate::canvas::{Canvas, Theme};
use crate::keymap::{self, TABLE};

/// What drawing remembers from frame to frame.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// Lines of the list that are scrolled past.
    scroll: usize,
    /// The conversation.
    layout: Layout,
}

/// Draws everything, and returns what of it keys depend on, and where the cursor is.
pub(crate) fn view(state: &State, cache: &mut Cache, frame: &mut ratatui::Frame<'_>) -> OnScreen {
    let area = frame.area();
    let theme = state.scene.theme;
    let mut canvas = Canvas::new(frame.buffer_mut(), theme);
    // The last row is for keys.
    let above = Rect { height: area.height.saturating_sub(1), ..area };
    let (on_screen, cursor): (OnScreen, Option<Position>) = match (state.help, &state.chat) {
        (Some(scroll), _) => (help::view(state.chat.is_some(), scroll, &mut canvas, area), None),
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

/// The keys of the footer.
fn footer_keys(state: &State, theme: Theme) -> Vec<(String, &'static str)> {
    let place = state.place();
    let rows = TABLE.iter().filter(|row| row.place == place);
    let rows = rows.filter_map(|row| Some((row, row.footer?)));
    let of_top = top::useful(state);
    let rows = rows.filter(|(row, _)| match &state.chat {
        Some(chat) => chat::useful(state, chat, place, row.action),
        None => of_top(place, row.action),
    });
    let first = |keys: &'static str| keys.split(' ').next().unwrap_or(keys);
    let word = |action, word| state.chat.as_ref().map_or(word, |it| chat::word(it, action, word));
    rows.map(|(row, name)| {
        (keymap::shown(first(row.keys), theme.is_unicode), word(row.action, name))
    })
    .collect()
}
