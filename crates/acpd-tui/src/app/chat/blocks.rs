//! Keys in the blocks of a conversation, and the search in it, upwards from the selected row. Older
//! lines are read as needed.
//!
//! ```text
//!  typed ──Enter──▶ searches ──match──▶ chosen; n continues upwards, N downwards
//!                    │  ▲
//!      nothing read  │  │ lines came
//!                    ▼  │
//!                   waits ──Esc, enough pages, the beginning──▶ message
//! ```

use acpd_view::text::Text;
use acpd_view::{Block, Id, Role, text};
use crossterm::event::KeyEvent;

use super::conversation::{is_prompt, own_text};
use super::options::menu_of_files;
use super::{ChatScreen, Phase};
use crate::app::{AppState, Effect};
use crate::input::Input;
use crate::keymap::{Action, KeyPlace};

const MAX_PAGES: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) typed: Option<Input>,
    /// In lower case; empty without a search.
    pub(super) words: String,
    /// The row above which the search continues, and the number of pages to read at most.
    pub(super) waits: Option<(Option<Id>, usize)>,
}

impl Search {
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(typed) = &mut self.typed {
            typed.insert(text);
        }
    }

    /// Ends the wait, or clears the words. Returns `false` if there was neither.
    pub(super) fn ends(&mut self) -> bool {
        self.waits.take().is_some() || !std::mem::take(&mut self.words).is_empty()
    }
}

impl ChatScreen {
    pub(in crate::app) fn scroll(&mut self, lines: isize) {
        self.conversation.scroll(lines);
    }

    /// Selects the clicked row. A second click folds or unfolds it.
    pub(in crate::app) fn click(&mut self, id: Id) {
        if self.card.has_keys() || self.menu.is_some() || self.search.typed.is_some() {
            return;
        }
        if self.in_blocks && self.conversation.selected == Some(id) {
            self.conversation.fold_selected();
        }
        self.conversation.choose(id);
        self.in_blocks = true;
    }

    /// Returns whether lines will arrive without another request: an older page was requested, or
    /// the first page is still being read.
    fn is_more_expected(&self) -> bool {
        let is_read = matches!(
            self.phase,
            Phase::Live | Phase::NotBegun | Phase::Stopped { .. } | Phase::Over(_)
        );
        self.conversation.is_asked() || !is_read
    }
}

impl AppState {
    pub(super) fn block_key(&mut self, action: Action) {
        let Some(chat) = &mut self.chat else { return };
        let conversation = &mut chat.conversation;
        match action {
            Action::Up => conversation.select(|rows, at| rows.get(at.saturating_sub(1))),
            Action::Down => conversation.select(|rows, at| rows.get(at + 1).or(rows.last())),
            Action::First => conversation.select(|rows, _| rows.first()),
            Action::Last => conversation.select_end(),
            Action::PreviousPrompt => {
                conversation.select(|rows, at| rows[..at].iter().rev().find(|row| is_prompt(row)));
            }
            Action::NextPrompt => {
                conversation.select(|rows, at| rows.iter().skip(at + 1).find(|row| is_prompt(row)));
            }
            Action::Fold => conversation.fold_selected(),
            Action::FoldAll => conversation.fold_all(true),
            Action::UnfoldAll => conversation.fold_all(false),
            Action::Thoughts => conversation.toggle_thoughts(),
            Action::Search => chat.search.typed = Some(Input::default()),
            Action::SearchOlder => self.search_older(),
            Action::SearchNewer => self.search_newer(),
            Action::Copy | Action::CopyMarkdown => {
                let text = match action {
                    Action::Copy => conversation.of_selected(own_text),
                    _ => conversation.of_selected(Block::markdown),
                };
                let Some(text) = text else { return };
                self.flash(Role::Good, "copied");
                self.out.push(Effect::Copy(text));
            }
            Action::Page => {
                let text = conversation.of_selected(Block::plain);
                if let Some(text) = text {
                    self.out.push(Effect::Page(text));
                }
            }
            Action::Files => {
                chat.menu = menu_of_files(conversation.changed_files());
                if chat.menu.is_none() {
                    self.flash(Role::Plain, "this turn has changed no file");
                }
            }
            Action::Back if chat.search.ends() => {}
            Action::Back => (chat.in_blocks, chat.conversation.selected) = (false, None),
            _ => {}
        }
    }

    pub(super) fn search_key(&mut self, action: Option<Action>, key: &KeyEvent) {
        let Some(search) = self.chat.as_mut().map(|chat| &mut chat.search) else { return };
        match (action, &mut search.typed) {
            (Some(Action::Back), _) => search.typed = None,
            (Some(Action::Confirm), typed) => {
                let typed = typed.take().unwrap_or_default();
                if !typed.text().trim().is_empty() {
                    search.words = typed.text().trim().to_lowercase();
                }
                self.search_older();
            }
            (_, Some(input)) => {
                input.key(key);
            }
            (_, None) => {}
        }
    }

    fn search_older(&mut self) {
        let from = self.chat.as_ref().and_then(|chat| chat.conversation.selected);
        self.search_from(from, MAX_PAGES);
    }

    fn search_newer(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if chat.search.words.is_empty() || !chat.conversation.find_newer(&chat.search.words) {
            self.flash(Role::Plain, "nothing below has these words");
        }
    }

    pub(in crate::app) fn continue_search(&mut self) {
        let waits = self.chat.as_mut().and_then(|chat| chat.search.waits.take());
        if let Some((from, pages)) = waits {
            self.search_from(from, pages);
        }
    }

    fn search_from(&mut self, from: Option<Id>, pages: usize) {
        let Some(chat) = &mut self.chat else { return };
        if chat.search.words.is_empty() {
            return;
        }
        let (from, is_asked) = match chat.conversation.find_older(&chat.search.words, from) {
            Ok(()) => return,
            Err(_) if pages == 0 => {
                let key = self.key_of(KeyPlace::Blocks, Action::SearchOlder);
                let words = text!("not in the last {} pages; {} looks further", MAX_PAGES, key);
                self.flash(Role::Plain, words);
                return;
            }
            Err(from) => (from, self.ask_for_older()),
        };
        match &mut self.chat {
            Some(chat) if is_asked || chat.is_more_expected() => {
                chat.search.waits = Some((from, pages - 1));
            }
            _ => {
                let key = self.key_of(KeyPlace::Blocks, Action::SearchNewer);
                self.flash(
                    Role::Plain,
                    text!("nothing above has these words; {} looks below", key),
                );
            }
        }
    }

    pub(super) fn search_status(&self) -> Option<Text> {
        let chat = self.chat.as_ref().filter(|chat| chat.search.waits.is_some())?;
        let at = chat.conversation.folded.first().unwrap_or(0);
        Some(text!(
            "searching, line {}: {} ends it",
            at,
            self.key_of(KeyPlace::Blocks, Action::Back)
        ))
    }
}
