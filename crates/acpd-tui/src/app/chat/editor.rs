use acpd_view::text;
use acpd_view::text::Text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, DataCursor, TextArea, WrapMode};
use unicode_width::UnicodeWidthStr as _;

use crate::app::prompt_draft::{Attached, PromptDraft};

const MAX_PASTED_LINES: usize = 10;

#[derive(Debug)]
pub(in crate::app) struct Editor {
    area: TextArea<'static>,
    /// Long pasted texts, in the order of their chips.
    pasted: Vec<String>,
    attached: Vec<Attached>,
    /// The ticket of the queued prompt that the draft replaces.
    in_place_of: Option<u64>,
    /// Sent and cleared drafts, the oldest first. They are recalled before earlier prompts.
    past: Vec<PromptDraft>,
    /// The number of steps back, and the replaced draft.
    recalled: Option<(usize, PromptDraft)>,
    /// The user typed since the text was set. Words of recalled prompts are not completed.
    is_typed: bool,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor {
            area: area(""),
            pasted: Vec::new(),
            attached: Vec::new(),
            in_place_of: None,
            past: Vec::new(),
            recalled: None,
            is_typed: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// `/` before a command, `@` before a file.
    pub(super) sign: char,
    pub(super) text: String,
    pub(super) at: (usize, usize),
}

impl Editor {
    pub(super) fn widget(&self, has_keys: bool) -> TextArea<'static> {
        let mut area = self.area.clone();
        if !has_keys {
            area.set_cursor_style(Style::new());
        }
        area
    }

    pub(super) fn height(&self, width: u16) -> u16 {
        let width = usize::from(width.max(2));
        let rows = |line: &String| (line.width() + 1).div_ceil(width).max(1);
        u16::try_from(self.area.lines().iter().map(rows).sum::<usize>()).unwrap_or(u16::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Returns the draft with pasted texts instead of chips.
    pub(super) fn said(&self) -> PromptDraft {
        let mut text = self.area.lines().join("\n");
        for (at, pasted) in self.pasted.iter().enumerate() {
            text = text.replacen(chip(at, pasted).as_str(), pasted, 1);
        }
        PromptDraft { text, all: self.attached.clone(), in_place_of: self.in_place_of }
    }

    /// Replaces the draft. The old one cannot be recalled.
    pub(super) fn set(&mut self, said: PromptDraft) {
        self.area = area(&said.text);
        self.attached = said.all;
        self.in_place_of = said.in_place_of;
        self.pasted.clear();
        self.recalled = None;
        self.is_typed = false;
    }

    /// Replaces the text. Attachments stay if their marks do.
    pub(super) fn rewrite(&mut self, text: String) {
        let all = std::mem::take(&mut self.attached);
        self.set(PromptDraft { text, all, in_place_of: self.in_place_of });
    }

    /// Replaces the draft. The old one can be recalled.
    pub(super) fn put(&mut self, said: PromptDraft) {
        self.clear();
        self.set(said);
    }

    pub(super) fn take(&mut self) -> Option<PromptDraft> {
        let said = self.empty();
        if said.is_empty() {
            return None;
        }
        self.past.push(PromptDraft::from(said.text.as_str()));
        Some(said)
    }

    /// Restores an unsent draft, in front of newer text.
    pub(super) fn give_back(&mut self, said: PromptDraft) {
        if self.past.last().is_some_and(|last| last.text == said.text) {
            self.past.pop();
        }
        let since = self.empty();
        self.set(if since.is_empty() { said } else { said.followed_by(since) });
    }

    /// Clears the draft, which can be recalled. Returns whether there was one.
    pub(super) fn clear(&mut self) -> bool {
        let was_empty = self.area.is_empty();
        let cleared = self.empty();
        let cleared = Some(PromptDraft { in_place_of: None, ..cleared });
        self.past.extend(cleared.filter(|said| !said.is_empty()));
        !was_empty
    }

    /// Takes the draft. A draft that a recalled prompt replaced can be recalled.
    fn empty(&mut self) -> PromptDraft {
        let said = self.said();
        let draft = self.recalled.take().map(|(_, draft)| draft).filter(|draft| !draft.is_empty());
        let mut past = std::mem::take(&mut self.past);
        past.extend(draft);
        *self = Editor { past, ..Editor::default() };
        said
    }

    pub(super) fn word(&self) -> Option<Word> {
        if !self.is_typed {
            return None;
        }
        let DataCursor(row, column) = self.area.cursor();
        let before: String = self.area.lines().get(row)?.chars().take(column).collect();
        let command = before.strip_prefix('/').filter(|_| row == 0);
        if let Some(text) = command.filter(|text| !text.contains(char::is_whitespace)) {
            return Some(Word { sign: '/', text: text.to_owned(), at: (row, 0) });
        }
        let start = before.rfind(char::is_whitespace);
        let start =
            start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let text = before[start..].strip_prefix('@')?.to_owned();
        let at = (row, before[..start].chars().count());
        Some(Word { sign: '@', text, at })
    }

    pub(super) fn complete(&mut self, word: &Word, with: &str) {
        for _ in 0..=word.text.chars().count() {
            self.area.delete_char();
        }
        self.area.insert_str(with);
    }

    pub(super) fn attach(&mut self, attached: Attached) {
        self.attached.push(attached);
    }

    pub(super) fn newline(&mut self) {
        self.area.insert_newline();
    }

    pub(super) fn paste(&mut self, text: &str) {
        let text = plain(text);
        self.is_typed = true;
        if text.lines().count() > MAX_PASTED_LINES {
            let chip = chip(self.pasted.len(), &text);
            self.pasted.push(text);
            self.area.insert_str(chip.as_str());
        } else {
            self.area.insert_str(text);
        }
    }

    pub(super) fn key(&mut self, key: &KeyEvent) {
        self.is_typed = true;
        match (key.code, key.modifiers) {
            // These are a shell's keys, which the widget does not follow.
            (KeyCode::Char('u'), KeyModifiers::CONTROL) => drop(self.area.delete_line_by_head()),
            (KeyCode::Char('y'), KeyModifiers::CONTROL) => drop(self.area.paste()),
            (KeyCode::Char('_' | '7'), KeyModifiers::CONTROL) => drop(self.area.undo()),
            (KeyCode::Tab | KeyCode::Enter, _) => {}
            _ => drop(self.area.input(*key)),
        }
    }

    /// Moves up; from the first row to the previous prompt.
    pub(super) fn up(&mut self, earlier: &[String]) {
        if self.area.cursor().0 > 0 {
            self.area.move_cursor(CursorMove::Up);
        } else {
            let next = self.recalled.as_ref().map_or(0, |(at, _)| at + 1);
            self.recall(next, earlier);
        }
    }

    /// Moves down; from the last row of a recalled prompt to the next one.
    pub(super) fn down(&mut self, earlier: &[String]) {
        let is_last = self.area.cursor().0 + 1 >= self.area.lines().len();
        match &self.recalled {
            Some((0, draft)) if is_last => {
                let draft = draft.clone();
                self.set(draft);
            }
            Some((at, _)) if is_last => self.recall(at - 1, earlier),
            _ => self.area.move_cursor(CursorMove::Down),
        }
    }

    fn recall(&mut self, back: usize, earlier: &[String]) {
        let is_past = |text: &&String| self.past.iter().any(|said| said.text.trim() == text.trim());
        let earlier = earlier.iter().rev().filter(|text| !is_past(text));
        let earlier = earlier.map(|text| PromptDraft::from(text.as_str()));
        let Some(said) = self.past.iter().rev().cloned().chain(earlier).nth(back) else { return };
        let draft = self.recalled.take().map_or_else(|| self.said(), |(_, draft)| draft);
        self.set(said);
        self.recalled = Some((back, draft));
    }
}

fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    text.chars().filter(|char| *char == '\n' || !char.is_control()).collect()
}

fn area(text: &str) -> TextArea<'static> {
    let text = plain(text);
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area.set_placeholder_text("say something");
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

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
        assert_eq!(editor.take().unwrap().text, format!("see:[2J {long}"));
        assert!(editor.is_empty());
    }

    #[test]
    fn earlier_prompts_come_back_and_the_draft_stays() {
        let earlier = ["one".to_owned(), "two".to_owned()];
        let mut editor = Editor::default();
        editor.paste("draft");
        editor.up(&earlier);
        assert_eq!(editor.said().text, "two");
        editor.up(&earlier);
        editor.up(&earlier);
        assert_eq!(editor.said().text, "one");
        editor.down(&earlier);
        editor.down(&earlier);
        assert_eq!(editor.said().text, "draft");
    }

    #[test]
    fn the_word_before_the_cursor_becomes_what_was_chosen() {
        let mut editor = Editor::default();
        editor.paste("/pl");
        let word = editor.word().unwrap();
        assert_eq!((word.sign, word.text.as_str()), ('/', "pl"));
        editor.complete(&word, "/plan ");
        assert_eq!(editor.word(), None, "its arguments are not completed");
        editor.paste("日本 @co");
        let word = editor.word().unwrap();
        assert_eq!((word.sign, word.text.as_str(), word.at), ('@', "co", (0, 9)));
        editor.complete(&word, "@src/cookie.rs ");
        assert_eq!(editor.said().text, "/plan 日本 @src/cookie.rs ");
        editor.paste("ada@example.org");
        assert_eq!(editor.word(), None, "this is an address");
    }

    #[test]
    fn no_draft_is_lost_whatever_takes_its_place() {
        let earlier = ["before".to_owned()];
        let brings_back = |editor: &mut Editor, words: &str| {
            (0..9).any(|_| {
                editor.up(&earlier);
                editor.said().text == words
            })
        };
        // Taken back over an editor that was cleared.
        let mut editor = Editor::default();
        editor.paste("draft");
        editor.clear();
        editor.put(PromptDraft::from("taken back"));
        assert!(brings_back(&mut editor, "draft"));
        // An earlier prompt is recalled over a draft, and sent.
        let mut editor = Editor::default();
        editor.paste("draft");
        editor.up(&earlier);
        assert_eq!(editor.take().unwrap().text, "before");
        assert!(brings_back(&mut editor, "draft"));
        // An earlier prompt is recalled over a draft, and cleared.
        let mut editor = Editor::default();
        editor.paste("draft");
        editor.up(&earlier);
        editor.clear();
        assert!(brings_back(&mut editor, "draft"));
        // A cleared draft comes over a draft, and that over something that was sent.
        let mut editor = Editor::default();
        editor.paste("cleared");
        editor.clear();
        editor.paste("sent");
        editor.take();
        editor.paste("draft");
        assert!(brings_back(&mut editor, "cleared"));
        (0..9).for_each(|_| editor.down(&earlier));
        assert_eq!(editor.said().text, "draft");
    }
}
