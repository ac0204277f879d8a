//! What is on the screen.

use ratatui::layout::Position;

use super::chat::Layout;
use super::{OnScreen, State, chat, help, top};
use crate::canvas::{Canvas, Theme};
use crate::keymap::{self, TABLE};

/// What drawing remembers from frame to frame.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// Lines of the list that are scrolled past.
    pub(super) scroll: usize,
    /// The conversation.
    pub(super) layout: Layout,
}

/// Draws everything, and returns what of it keys depend on, and where the cursor is.
pub(crate) fn view(state: &State, cache: &mut Cache, frame: &mut ratatui::Frame<'_>) -> OnScreen {
    let area = frame.area();
    let theme = state.scene.theme;
    let mut canvas = Canvas::new(frame.buffer_mut(), theme);
    let (on_screen, cursor): (OnScreen, Option<Position>) = match (state.help, &state.chat) {
        (Some(scroll), _) => (help::view(scroll, &mut canvas, area), None),
        (None, Some(chat)) => (chat::view(state, chat, cache, &mut canvas, area), None),
        (None, None) => top::view(state, cache, &mut canvas, area),
    };
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    on_screen
}

/// The keys of the footer.
pub(super) fn footer_keys(state: &State, theme: Theme) -> Vec<(String, &'static str)> {
    let place = state.place();
    let rows = TABLE.iter().filter(|row| row.place == place);
    let rows = rows.filter_map(|row| Some((row, row.footer?)));
    let rows = rows.filter(|(row, _)| match &state.chat {
        Some(chat) => chat::useful(state, chat, place, row.action),
        None => top::useful(state, place, row.action),
    });
    let first = |keys: &'static str| keys.split(' ').next().unwrap_or(keys);
    rows.map(|(row, word)| (keymap::shown(first(row.keys), theme.is_unicode), word)).collect()
}
