//! Search in a conversation, upwards from the selected row. Older lines are read as needed.
//!
//! ```text
//!  typed ──Enter──▶ searches ──match──▶ chosen; n continues upwards, N downwards
//!                    │  ▲
//!      nothing read  │  │ lines came
//!                    ▼  │
//!                   waits ──Esc, enough pages, the beginning──▶ message
//! ```

use acpd_view::text::Text;
use acpd_view::{Id, Role, text};
use crossterm::event::KeyEvent;

use super::{ChatScreen, Phase};
use crate::app::AppState;
use crate::input::Input;
use crate::keymap::{Action, KeyPlace};

const MAX_PAGES: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) typed: Option<Input>,
    /// In lower case; empty without a search.
    pub(super) words: String,
    pub(super) waits: Option<Waits>,
}

#[derive(Debug)]
pub(super) struct Waits {
    /// The search continues above this row.
    from: Option<Id>,
    pages: usize,
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

    pub(super) fn search_older(&mut self) {
        let from = self.chat.as_ref().and_then(|chat| chat.conversation.selected);
        self.search_from(from, MAX_PAGES);
    }

    pub(super) fn search_newer(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if chat.search.words.is_empty() || !chat.conversation.find_newer(&chat.search.words) {
            self.flash(Role::Plain, "nothing below has these words");
        }
    }

    pub(in crate::app) fn continue_search(&mut self) {
        let waits = self.chat.as_mut().and_then(|chat| chat.search.waits.take());
        if let Some(Waits { from, pages }) = waits {
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
                chat.search.waits = Some(Waits { from, pages: pages - 1 });
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
