use acpd_api::Untrusted;
use acpd_view::text::Text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr as _;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
    cursor: usize,
}

impl Input {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the part around the cursor that fits, and the cursor's column.
    pub(crate) fn shown(&self, room: usize) -> (Text, usize) {
        let before = Untrusted::from(&self.text[..self.cursor]);
        let after = Untrusted::from(&self.text[self.cursor..]);
        let (before, after) = (before.verbatim().to_string(), after.verbatim().to_string());
        let mut start = 0;
        while before[start..].width() >= room.max(2) {
            start += before[start..].chars().next().map_or(1, char::len_utf8);
        }
        let column = before[start..].width();
        let shown = Untrusted::from(format!("{}{after}", &before[start..]));
        (Text::from(shown.verbatim()).cut(room), column)
    }

    /// Returns whether the key edits the line.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> bool {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if is_ctrl => self.cursor = 0,
            KeyCode::Char('e') if is_ctrl => self.cursor = self.text.len(),
            KeyCode::Char('u') if is_ctrl => {
                drop(self.text.drain(..std::mem::take(&mut self.cursor)));
            }
            KeyCode::Char('w') if is_ctrl => {
                let words = self.text[..self.cursor].trim_end();
                let start = words.rfind(' ').map_or(0, |at| at + 1);
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            KeyCode::Char(char) if !is_ctrl && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(char.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => {
                if let Some(char) = self.text[..self.cursor].chars().next_back() {
                    self.cursor -= char.len_utf8();
                    self.text.remove(self.cursor);
                }
            }
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => {
                let char = self.text[..self.cursor].chars().next_back();
                self.cursor -= char.map_or(0, char::len_utf8);
            }
            KeyCode::Right => {
                self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
            }
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Newlines become spaces.
    pub(crate) fn insert(&mut self, text: &str) {
        let line = text.replace(['\r', '\n'], " ");
        self.text.insert_str(self.cursor, &line);
        self.cursor += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
        assert!(input.key(&KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        let mut input = Input::default();
        input.insert("fix the\ntests 日本");
        press(&mut input, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut input, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "fix the tests ");
        press(&mut input, KeyCode::Home, KeyModifiers::NONE);
        press(&mut input, KeyCode::Delete, KeyModifiers::NONE);
        press(&mut input, KeyCode::Char('F'), KeyModifiers::SHIFT);
        assert_eq!(input.text(), "Fix the tests ");
        press(&mut input, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "ix the tests ");
        assert!(!input.key(&KeyEvent::new(KeyCode::F(9), KeyModifiers::NONE)));
    }

    #[test]
    fn the_cursor_stays_in_sight_and_what_was_pasted_is_escaped() {
        let mut input = Input::default();
        input.insert("\u{1b}[2J and a long text");
        let (shown, column) = input.shown(10);
        assert_eq!((shown.as_str(), column), ("long text", 9));
        assert!(!input.shown(80).0.as_str().contains('\u{1b}'));
    }
}
