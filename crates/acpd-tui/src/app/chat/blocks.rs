//! Keys in the blocks of a conversation.

use acpd_view::{Block, Role as Look};

use super::ChatScreen;
use super::conversation::{is_prompt, own_text};
use super::options::menu_of_files;
use crate::app::{AppState, Effect, Id};
use crate::input::Input;
use crate::keymap::Action;

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
                self.flash(Look::Good, "copied");
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
                    self.flash(Look::Plain, "this turn has changed no file");
                }
            }
            Action::Back if chat.search.ends() => {}
            Action::Back => (chat.in_blocks, chat.conversation.selected) = (false, None),
            _ => {}
        }
    }
}
