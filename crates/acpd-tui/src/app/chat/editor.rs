//! The prompt that is being written.

use acpd_view::text;
use acpd_view::text::Text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use unicode_width::UnicodeWidthStr as _;

use crate::app::Effect;

/// More lines than this are shown as a chip.
const CHIP: usize = 10;

/// The prompt, and the earlier ones that it may be replaced by.
#[derive(Debug)]
pub(super) struct Editor {
    area: TextArea<'static>,
    /// Long texts that were pasted, in the order of their chips.
    pasted: Vec<String>,
    /// Which earlier prompt is shown, counted from the last, and what was written before.
    recalled: Option<(usize, String)>,
    /// What was cleared, which comes before the earlier prompts.
    cleared: Option<String>,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor { area: area(""), pasted: Vec::new(), recalled: None, cleared: None }
    }
}

impl Editor {
    /// The widget.
    pub(super) fn widget(&self, has_keys: bool) -> TextArea<'static> {
        let mut area = self.area.clone();
        if !has_keys {
            area.set_cursor_style(Style::new());
        }
        area
    }

    /// The rows that it needs in this width.
    pub(super) fn height(&self, width: u16) -> u16 {
        let width = usize::from(width.max(2));
        let rows = |line: &String| (line.width() + 1).div_ceil(width).max(1);
        u16::try_from(self.area.lines().iter().map(rows).sum::<usize>()).unwrap_or(u16::MAX)
    }

    /// Whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// All that is written, with what the chips stand for.
    pub(super) fn text(&self) -> String {
        let mut text = self.area.lines().join("\n");
        for (at, pasted) in self.pasted.iter().enumerate() {
            text = text.replacen(chip(at, pasted).as_str(), pasted, 1);
        }
        text
    }

    /// Replaces all that is written.
    pub(super) fn set(&mut self, text: &str) {
        self.area = area(text);
        self.pasted.clear();
        self.recalled = None;
    }

    /// Takes all that is written, if it is anything.
    pub(super) fn take(&mut self) -> Option<String> {
        let text = self.text();
        if text.trim().is_empty() {
            return None;
        }
        *self = Editor::default();
        Some(text)
    }

    /// Clears it; what was written can be brought back. Returns whether anything was.
    pub(super) fn clear(&mut self) -> bool {
        let text = self.text();
        let cleared = self.take().is_some() || !self.area.is_empty();
        *self = Editor { cleared: cleared.then_some(text), ..Editor::default() };
        cleared
    }

    /// Begins a new line.
    pub(super) fn newline(&mut self) -> Vec<Effect> {
        self.area.insert_newline();
        Vec::new()
    }

    /// Takes pasted text. If it is long, a chip stands for it.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let is_seen = |char: &char| *char == '\n' || !char.is_control();
        let text: String = text.chars().filter(is_seen).collect();
        if text.lines().count() > CHIP {
            let chip = chip(self.pasted.len(), &text);
            self.pasted.push(text);
            self.area.insert_str(chip.as_str());
        } else {
            self.area.insert_str(text);
        }
    }

    /// Takes a key that is no command.
    pub(super) fn key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        match (key.code, key.modifiers) {
            // As in a shell; the widget has other ideas.
            (KeyCode::Char('u'), KeyModifiers::CONTROL) => drop(self.area.delete_line_by_head()),
            (KeyCode::Char('y'), KeyModifiers::CONTROL) => drop(self.area.paste()),
            (KeyCode::Char('_' | '7'), KeyModifiers::CONTROL) => drop(self.area.undo()),
            (KeyCode::Tab | KeyCode::Enter, _) => {}
            _ => drop(self.area.input(*key)),
        }
        Vec::new()
    }

    /// A row up; from the first row, to the prompt before.
    pub(super) fn up(&mut self, earlier: &[String]) -> Vec<Effect> {
        if self.area.cursor().0 > 0 {
            self.area.move_cursor(CursorMove::Up);
        } else if let (None, Some(cleared)) = (&self.recalled, self.cleared.take()) {
            self.set(&cleared);
        } else {
            let next = self.recalled.as_ref().map_or(0, |(at, _)| at + 1);
            self.recall(next, earlier);
        }
        Vec::new()
    }

    /// A row down; from the last row of an earlier prompt, to the one after.
    pub(super) fn down(&mut self, earlier: &[String]) -> Vec<Effect> {
        let is_last = self.area.cursor().0 + 1 >= self.area.lines().len();
        match &self.recalled {
            Some((0, draft)) if is_last => {
                let draft = draft.clone();
                self.set(&draft);
            }
            Some((at, _)) if is_last => self.recall(at - 1, earlier),
            _ => self.area.move_cursor(CursorMove::Down),
        }
        Vec::new()
    }

    fn recall(&mut self, back: usize, earlier: &[String]) {
        let Some(text) = earlier.iter().rev().nth(back) else { return };
        let draft = self.recalled.take().map_or_else(|| self.text(), |(_, draft)| draft);
        self.set(text);
        self.recalled = Some((back, draft));
    }
}

fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area.set_placeholder_text("say something");
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// What stands for a long text.
fn chip(at: usize, pasted: &str) -> Text {
    text!("[pasted {}: {} lines]", at + 1, pasted.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_paste_is_a_chip_and_is_sent_whole() {
        let mut editor = Editor::default();
        editor.paste("see:\u{1b}[2J ");
        let long = "another line\n".repeat(12);
        editor.paste(&long);
        assert_eq!(editor.area.lines().join("|"), "see:[2J [pasted 1: 12 lines]");
        assert_eq!(editor.take().unwrap(), format!("see:[2J {long}"));
        assert!(editor.is_empty());
    }

    #[test]
    fn earlier_prompts_come_back_and_the_draft_stays() {
        let earlier = ["one".to_owned(), "two".to_owned()];
        let mut editor = Editor::default();
        editor.paste("draft");
        editor.up(&earlier);
        assert_eq!(editor.text(), "two");
        editor.up(&earlier);
        editor.up(&earlier);
        assert_eq!(editor.text(), "one");
        editor.down(&earlier);
        editor.down(&earlier);
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn what_was_cleared_is_the_first_to_come_back() {
        let mut editor = Editor::default();
        editor.paste("an hour of thoughts");
        assert!(editor.clear());
        assert!(!editor.clear());
        editor.paste("an hour of thoughts");
        editor.clear();
        editor.up(&["before".to_owned()]);
        assert_eq!(editor.text(), "an hour of thoughts");
    }
}
