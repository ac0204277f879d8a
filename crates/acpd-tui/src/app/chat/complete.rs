//! The list next to the prompt: completions of the word before the cursor, or earlier prompts.
//! Completions open and close with their word. Esc closes them until another word begins.

use acpd_api::Untrusted;
use acpd_view::text::Text;
use acpd_view::{Command, Role, text};
use crossterm::event::KeyEvent;

use super::editor::Word;
use crate::app::prompt_draft::{Attached, PromptDraft};
use crate::app::{AppState, Effect};
use crate::input::Input;
use crate::keymap::Action;
use crate::pick_list::{PickList, PickRow, fits};

const MAX_ROWS: usize = 8;
const MAX_COMPLETIONS: usize = 200;
const FRESH_MS: u64 = 5000;
const PROMPT_WIDTH: usize = 200;

#[derive(Debug)]
pub(super) struct PromptList {
    /// None if nothing matches.
    list: Option<PickList<String>>,
    of: ListOf,
}

#[derive(Debug)]
enum ListOf {
    Completions(Word),
    /// Matching earlier prompts, the last one first.
    Prompts {
        query: Input,
        prompts: Vec<String>,
    },
}

#[derive(Debug, Default)]
pub(in crate::app) struct Files {
    directory: String,
    paths: Vec<String>,
    /// When the directory was last read, in ms since the epoch.
    read: u64,
    is_asked: bool,
}

impl Files {
    pub(in crate::app) fn take(&mut self, directory: String, paths: Vec<String>, now: u64) {
        if directory == self.directory {
            *self = Files { directory, paths, read: now, is_asked: false };
        }
    }

    fn wants(&mut self, directory: &str, now: u64) -> bool {
        if self.directory != directory {
            *self = Files { directory: directory.to_owned(), ..Files::default() };
        } else if self.is_asked || (self.read > 0 && now < self.read + FRESH_MS) {
            return false;
        }
        self.is_asked = true;
        true
    }
}

impl PromptList {
    pub(super) fn lines(&self, room: usize) -> Vec<Text> {
        let ListOf::Prompts { query, .. } = &self.of else {
            return self.list.iter().flat_map(|list| list.lines(room)).collect();
        };
        let head = Text::of(Role::Dim, " earlier prompts: ")
            .and(Role::Plain, query.shown(PROMPT_WIDTH).0)
            .and(Role::Name, "█");
        let rows = self.list.as_ref().map(|list| list.lines(room.saturating_sub(1)));
        let none = || vec![Text::of(Role::Dim, "   none has these words")];
        std::iter::once(head).chain(rows.unwrap_or_else(none)).collect()
    }

    pub(super) fn height(&self) -> usize {
        let head = usize::from(!self.leaves_keys());
        head + self.list.as_ref().map_or(1, PickList::len).min(MAX_ROWS)
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let ListOf::Prompts { query, prompts } = &mut self.of {
            query.insert(text);
            self.list = with_words(query.text(), prompts);
        }
    }

    /// Returns whether keys without an action go to the prompt.
    pub(super) fn leaves_keys(&self) -> bool {
        matches!(self.of, ListOf::Completions(_))
    }
}

impl AppState {
    pub(in crate::app) fn update_completions(&mut self) {
        let cwd = self.chat_session().map(|session| session.cwd.raw().to_owned());
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.takes_words()) else { return };
        let word = chat.editor.word();
        if word.as_ref().map(|word| word.at) != chat.closed_at {
            chat.closed_at = None;
        }
        let Some(word) = word.filter(|_| chat.closed_at.is_none()) else {
            chat.prompt_list = None;
            return;
        };
        let list = match (word.sign, cwd) {
            ('/', _) => {
                let commands = &chat.conversation.folded.header().commands;
                let commands = commands.as_deref().unwrap_or_default();
                let list = of_commands(&word.text, commands);
                if commands.is_empty() {
                    self.ask_for_older();
                }
                list
            }
            (_, Some(cwd)) => {
                if self.files.wants(&cwd, self.now) {
                    self.out.push(Effect::ReadFiles(cwd));
                }
                of_files(&word.text, &self.files.paths)
            }
            (_, None) => None,
        };
        if let Some(chat) = &mut self.chat {
            chat.prompt_list = list.map(|mut list| {
                if let Some(PromptList { list: Some(before), .. }) = &chat.prompt_list {
                    list.keep_choice(before);
                }
                PromptList { list: Some(list), of: ListOf::Completions(word) }
            });
        }
    }

    pub(super) fn search_prompts(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        let mut prompts: Vec<String> = Vec::new();
        for prompt in self.said.iter().cloned().chain(chat.conversation.prompts()).rev() {
            if !prompts.contains(&prompt) {
                prompts.push(prompt);
            }
        }
        let list = with_words("", &prompts);
        let of = ListOf::Prompts { query: Input::default(), prompts };
        chat.prompt_list = Some(PromptList { list, of });
    }

    /// Returns `false` if the key is for the prompt.
    pub(super) fn on_list_key(&mut self, action: Option<Action>, key: &KeyEvent) -> bool {
        let cwd = self.chat_session().map(|session| session.cwd.raw().to_owned());
        let Some(chat) = &mut self.chat else { return false };
        let Some(PromptList { list, of }) = &mut chat.prompt_list else { return false };
        match (action, of) {
            (Some(Action::Up | Action::Down), _) => match list {
                Some(list) => list.go(if action == Some(Action::Up) { -1 } else { 1 }),
                None => return false,
            },
            (Some(Action::Back), _) => {
                chat.closed_at = chat.editor.word().map(|word| word.at);
                chat.prompt_list = None;
            }
            (Some(Action::Confirm | Action::Complete), ListOf::Completions(word)) => {
                let value = list.as_ref().and_then(PickList::chosen).cloned().unwrap_or_default();
                let is_whole = value == word.text && action == Some(Action::Confirm);
                let word = word.clone();
                chat.prompt_list = None;
                if is_whole {
                    return false;
                }
                chat.editor.complete(&word, &format!("{}{value} ", word.sign));
                if let ('@', Some(cwd)) = (word.sign, cwd) {
                    chat.editor.attach(Attached::file(&cwd, &value));
                }
            }
            (Some(Action::Confirm | Action::Complete), ListOf::Prompts { .. }) => {
                if let Some(text) = list.as_ref().and_then(PickList::chosen) {
                    let said = PromptDraft::from(text.as_str());
                    chat.editor.put(said);
                }
                chat.prompt_list = None;
            }
            (_, ListOf::Prompts { query, prompts }) => {
                if query.key(key) {
                    *list = with_words(query.text(), prompts);
                }
            }
            (_, ListOf::Completions(_)) => return false,
        }
        true
    }
}

fn of_commands(typed: &str, commands: &[Command]) -> Option<PickList<String>> {
    let names: Vec<&str> = commands.iter().map(|command| command.name.raw()).collect();
    let item = |at: usize| {
        let Command { name, description, input } = &commands[at];
        let hint = input.as_ref().map(|input| &input.hint).filter(|hint| !hint.raw().is_empty());
        let hint = hint.map(|hint| text!("<{}> ", hint));
        let (label, note) = (text!("/{}", name), text!("{}{}", hint, description));
        PickRow::new(Text::of(Role::Name, label), note, name.raw().to_owned())
    };
    PickList::of(fits(typed, &names).into_iter().take(MAX_COMPLETIONS).map(item))
}

fn of_files(typed: &str, paths: &[String]) -> Option<PickList<String>> {
    let item = |at: usize| {
        let label = Text::of(Role::Name, Untrusted::from(paths[at].as_str()));
        PickRow::new(label, "", paths[at].clone())
    };
    PickList::of(fits(typed, paths).into_iter().take(MAX_COMPLETIONS).map(item))
}

fn with_words(query: &str, prompts: &[String]) -> Option<PickList<String>> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let fits = |prompt: &&String| {
        let prompt = prompt.to_lowercase();
        words.iter().all(|word| prompt.contains(word))
    };
    let item = |prompt: &String| {
        let label = Text::of(Role::Name, Untrusted::from(prompt.trim())).cut(PROMPT_WIDTH);
        PickRow::new(label, "", prompt.clone())
    };
    PickList::of(prompts.iter().filter(fits).take(MAX_COMPLETIONS).map(item))
}
