//! The table of keys: place, keys, action, words. The first matching row counts. Footers and the
//! page of keys use the same rows.

use acpd_api::Untrusted;
use acpd_view::text::Text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The row, block or choice before.
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    /// In a conversation, the live end.
    Last,
    Open,
    Question,
    /// Without an answer.
    Back,
    /// The answer with the number of the key.
    Choose,
    /// Give the chosen answer, or end the typed line.
    Confirm,
    Prompt,
    New,
    Rename,
    Filter,
    Cancel,
    Keys,
    /// Start acpd after it was stopped on purpose.
    Start,
    Redraw,
    Suspend,
    Quit,
    Detach,
    Top,
    Steer,
    Newline,
    /// From the prompt to the question or the blocks.
    Blocks,
    Fold,
    FoldAll,
    UnfoldAll,
    PreviousPrompt,
    NextPrompt,
    Copy,
    CopyMarkdown,
    Search,
    SearchOlder,
    SearchNewer,
    Page,
    Files,
    Thoughts,
    Mouse,
    Restart,
    Options,
    Queue,
    Edit,
    SearchPrompts,
    Complete,
    /// Choose another agent for a new session.
    NextAgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// Unless the place itself uses the key.
    Everywhere,
    Top,
    Line,
    Question,
    Prompt,
    Blocks,
    List,
    Menu,
    Help,
}

#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) place: KeyPlace,
    /// Separated by spaces.
    pub(crate) keys: &'static str,
    pub(crate) action: Action,
    pub(crate) words: &'static str,
    /// None for keys that are not in the footer.
    pub(crate) footer: Option<&'static str>,
}

const fn key(
    place: KeyPlace,
    keys: &'static str,
    action: Action,
    words: &'static str,
    footer: Option<&'static str>,
) -> Binding {
    Binding { place, keys, action, words, footer }
}

use KeyPlace::{Blocks, Everywhere, Help, Line, List, Menu, Prompt, Question, Top};

/// Footers keep this order, and drop the last keys first.
pub(crate) const TABLE: &[Binding] = &[
    key(Top, "a tab", Action::Question, "answer the question", Some("answer")),
    key(Top, "enter right l", Action::Open, "open the session", Some("open")),
    key(Top, "p", Action::Prompt, "prompt the session", Some("prompt")),
    key(Top, "c", Action::Cancel, "cancel its turn (twice)", Some("cancel")),
    key(Top, "r", Action::Restart, "restart its agent (twice)", None),
    key(Top, "n", Action::New, "new session here", Some("new")),
    key(Top, "e", Action::Rename, "rename the session", None),
    key(Top, "/", Action::Filter, "show only what fits", Some("filter")),
    key(Top, "?", Action::Keys, "this page", Some("keys")),
    key(Top, "q ctrl-c ctrl-d", Action::Quit, "leave; nothing stops", Some("quit")),
    key(Top, "up k", Action::Up, "previous", None),
    key(Top, "down j", Action::Down, "next", None),
    key(Top, "home g", Action::First, "first", None),
    key(Top, "end G", Action::Last, "last", None),
    key(Top, "esc", Action::Back, "all sessions again", None),
    key(Line, "enter", Action::Confirm, "send, or keep the filter", Some("done")),
    key(Line, "ctrl-s", Action::Steer, "say it into the running turn", Some("steer")),
    key(Line, "tab", Action::NextAgent, "another agent (new session)", Some("agent")),
    key(Line, "esc ctrl-c", Action::Back, "back; nothing is sent", Some("back")),
    key(Question, "1-9", Action::Choose, "choose", Some("choose")),
    key(Question, "up k", Action::Up, "the choice before", None),
    key(Question, "down j", Action::Down, "the next choice", None),
    key(Question, "enter", Action::Confirm, "confirm what is chosen", Some("confirm")),
    key(Question, "pgdn space", Action::PageDown, "the rest of a long command", Some("more")),
    key(Question, "pgup", Action::PageUp, "its beginning", None),
    key(Question, "esc tab q", Action::Back, "back, unanswered", Some("back")),
    key(Prompt, "enter", Action::Confirm, "send, or queue", Some("send")),
    key(Prompt, "ctrl-s", Action::Steer, "steer the running turn", Some("steer")),
    key(Prompt, "ctrl-j shift-enter alt-enter", Action::Newline, "a new line", Some("newline")),
    key(Prompt, "tab", Action::Blocks, "to the question, else to the blocks", Some("blocks")),
    key(Prompt, "ctrl-c", Action::Cancel, "clear; twice: cancel the turn", Some("cancel")),
    key(Prompt, "ctrl-d ctrl-\\", Action::Detach, "detach; it continues", Some("detach")),
    key(Prompt, "ctrl-o", Action::Options, "mode, model, options", Some("options")),
    key(Prompt, "ctrl-g f1", Action::Keys, "this page", Some("keys")),
    key(Prompt, "ctrl-t", Action::Thoughts, "show or hide thoughts", None),
    key(Prompt, "ctrl-q", Action::Queue, "change what is queued", None),
    key(Prompt, "ctrl-x", Action::Edit, "edit in $EDITOR", None),
    key(Prompt, "ctrl-r", Action::SearchPrompts, "search earlier prompts", None),
    key(Prompt, "up ctrl-p", Action::Up, "earlier prompts", None),
    key(Prompt, "down ctrl-n", Action::Down, "later prompts", None),
    key(Prompt, "ctrl-end", Action::Last, "to the live end", None),
    key(List, "tab", Action::Complete, "put it in", Some("put in")),
    key(List, "enter", Action::Confirm, "put it in; send what is whole", None),
    key(List, "up ctrl-p", Action::Up, "previous", Some("previous")),
    key(List, "down ctrl-n ctrl-r", Action::Down, "next", Some("next")),
    key(List, "esc ctrl-c", Action::Back, "close; the text stays", Some("close")),
    key(Blocks, "up k", Action::Up, "previous block", Some("block")),
    key(Blocks, "down j", Action::Down, "next block", None),
    key(Blocks, "space enter", Action::Fold, "fold, unfold", Some("fold")),
    key(Blocks, "z", Action::FoldAll, "fold all", None),
    key(Blocks, "Z", Action::UnfoldAll, "unfold all", None),
    key(Blocks, "[", Action::PreviousPrompt, "previous prompt", Some("prompt")),
    key(Blocks, "]", Action::NextPrompt, "next prompt", None),
    key(Blocks, "g home", Action::First, "the beginning", None),
    key(Blocks, "G end", Action::Last, "the live end", Some("live")),
    key(Blocks, "/", Action::Search, "search upwards", Some("search")),
    key(Blocks, "n", Action::SearchOlder, "the next one upwards", None),
    key(Blocks, "N", Action::SearchNewer, "the next one downwards", None),
    key(Blocks, "y", Action::Copy, "copy the block", Some("copy")),
    key(Blocks, "Y", Action::CopyMarkdown, "copy it as Markdown", None),
    key(Blocks, "o", Action::Page, "open it in $PAGER", Some("page")),
    key(Blocks, "d", Action::Files, "files changed in its turn", Some("files")),
    key(Blocks, "ctrl-t", Action::Thoughts, "show or hide thoughts", None),
    key(Blocks, "esc tab i", Action::Back, "back to the prompt", Some("prompt")),
    key(Blocks, "ctrl-c", Action::Cancel, "twice: cancel the turn", None),
    key(Blocks, "q ctrl-d ctrl-\\", Action::Detach, "detach; it continues", Some("detach")),
    key(Blocks, "?", Action::Keys, "this page", None),
    key(Menu, "up k", Action::Up, "previous", None),
    key(Menu, "down j", Action::Down, "next", None),
    key(Menu, "enter", Action::Confirm, "choose", Some("choose")),
    key(Menu, "esc q ctrl-c ctrl-o", Action::Back, "back", Some("back")),
    key(Help, "up k", Action::Up, "up", None),
    key(Help, "down j", Action::Down, "down", None),
    key(Help, "esc q ? ctrl-g f1 ctrl-c enter", Action::Back, "back", Some("back")),
    key(Help, "ctrl-d ctrl-\\", Action::Detach, "leave the screen", None),
    key(Everywhere, "pgup", Action::PageUp, "a screen back", None),
    key(Everywhere, "pgdn", Action::PageDown, "a screen on", None),
    key(Everywhere, "f3", Action::Mouse, "take the mouse, or give it back", None),
    key(Everywhere, "f5", Action::Top, "all sessions", None),
    key(Everywhere, "f2", Action::Start, "start acpd, if it was stopped", None),
    key(Everywhere, "ctrl-l", Action::Redraw, "draw again", None),
    key(Everywhere, "ctrl-z", Action::Suspend, "suspend", None),
    key(Everywhere, "ctrl-g f1", Action::Keys, "this page", None),
];

pub(crate) fn action(place: KeyPlace, key: &KeyEvent) -> Option<Action> {
    let fits = |row: &&Binding| {
        (row.place == place || row.place == KeyPlace::Everywhere)
            && row.keys.split(' ').any(|name| is_key(name, key))
    };
    TABLE.iter().find(fits).map(|row| row.action)
}

pub(crate) fn rows(place: KeyPlace) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.place == place)
}

pub(crate) fn key_of(place: KeyPlace, action: Action, is_unicode: bool) -> Text {
    let mut rows = rows(place).chain(rows(KeyPlace::Everywhere));
    let row = rows.find(|row| row.action == action);
    debug_assert!(row.is_some(), "{action:?} has no key in {place:?}");
    let keys = row.map_or("", |row| row.keys);
    let first = keys.split(' ').next().unwrap_or_default();
    Text::from(&Untrusted::from(shown(first, is_unicode)))
}

pub(crate) fn digit(key: &KeyEvent) -> Option<usize> {
    match key.code {
        KeyCode::Char(char) => char.to_digit(10).filter(|digit| *digit > 0).map(|d| d as usize),
        _ => None,
    }
}

fn is_key(name: &str, key: &KeyEvent) -> bool {
    let modifiers = KeyModifiers::CONTROL | KeyModifiers::ALT;
    if name == "1-9" {
        return digit(key).is_some() && !key.modifiers.intersects(modifiers);
    }
    let (wanted, name) = modified(name);
    let Some(code) = code(name) else { return false };
    match code {
        // Shift is part of the character.
        KeyCode::Char(char) => {
            let typed = match key.code {
                KeyCode::Char(typed) if wanted.is_empty() => typed,
                KeyCode::Char(typed) => typed.to_ascii_lowercase(),
                _ => return false,
            };
            typed == char && key.modifiers & modifiers == wanted
        }
        code => key.code == code && key.modifiers & (modifiers | KeyModifiers::SHIFT) == wanted,
    }
}

fn modified(name: &str) -> (KeyModifiers, &str) {
    let all = [
        ("ctrl-", KeyModifiers::CONTROL),
        ("alt-", KeyModifiers::ALT),
        ("shift-", KeyModifiers::SHIFT),
    ];
    let found = all.iter().find_map(|(prefix, m)| Some((*m, name.strip_prefix(prefix)?)));
    found.unwrap_or((KeyModifiers::NONE, name))
}

/// Names of keys, and their labels with Unicode and without.
const NAMES: [(&str, KeyCode, [&str; 2]); 11] = [
    ("enter", KeyCode::Enter, ["⏎", "Enter"]),
    ("esc", KeyCode::Esc, ["Esc"; 2]),
    ("tab", KeyCode::Tab, ["Tab"; 2]),
    ("space", KeyCode::Char(' '), ["Space"; 2]),
    ("up", KeyCode::Up, ["↑", "Up"]),
    ("down", KeyCode::Down, ["↓", "Down"]),
    ("right", KeyCode::Right, ["→", "Right"]),
    ("home", KeyCode::Home, ["Home"; 2]),
    ("end", KeyCode::End, ["End"; 2]),
    ("pgup", KeyCode::PageUp, ["PgUp"; 2]),
    ("pgdn", KeyCode::PageDown, ["PgDn"; 2]),
];

fn code(name: &str) -> Option<KeyCode> {
    let named = NAMES.iter().find(|(own, ..)| *own == name).map(|(_, code, _)| *code);
    let function = || Some(KeyCode::F(name.strip_prefix('f')?.parse().ok()?));
    named.or_else(function).or_else(|| Some(KeyCode::Char(name.parse().ok()?)))
}

/// Returns the keys in their usual notation: `^C`, `⏎`.
pub(crate) fn shown(keys: &str, is_unicode: bool) -> String {
    let names = keys.split(' ').map(|name| {
        let (modifiers, name) = modified(name);
        let name = match NAMES.iter().find(|(own, ..)| *own == name) {
            Some((.., labels)) => labels[usize::from(!is_unicode)].to_owned(),
            None if modifiers == KeyModifiers::CONTROL || name.len() > 1 => name.to_uppercase(),
            None => name.to_owned(),
        };
        match modifiers {
            KeyModifiers::CONTROL => format!("^{name}"),
            KeyModifiers::ALT => format!("Alt-{name}"),
            KeyModifiers::SHIFT => format!("Shift-{name}"),
            _ => name,
        }
    });
    names.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn every_key_in_the_table_has_a_meaning() {
        for binding in TABLE {
            for name in binding.keys.split(' ') {
                let (_, rest) = modified(name);
                assert!(name == "1-9" || code(rest).is_some(), "`{name}`");
            }
        }
    }

    #[test]
    fn no_key_has_two_meanings_at_one_place() {
        for (at, one) in TABLE.iter().enumerate() {
            for other in &TABLE[at + 1..] {
                let twice =
                    one.keys.split(' ').find(|key| other.keys.split(' ').any(|o| o == *key));
                assert!(
                    one.place != other.place || twice.is_none(),
                    "{twice:?} at {:?}",
                    one.place
                );
            }
        }
    }

    #[test]
    fn no_key_leads_to_a_question_and_answers_it() {
        use Action::{Blocks, Choose, Confirm, Down, Question, Up};
        let leads = TABLE.iter().filter(|row| matches!(row.action, Question | Blocks));
        for key in leads.flat_map(|row| row.keys.split(' ')) {
            let answers = rows(KeyPlace::Question)
                .filter(|row| matches!(row.action, Choose | Up | Down | Confirm))
                .flat_map(|row| row.keys.split(' '))
                .any(|name| name == key || (name == "1-9" && key.parse::<u8>().is_ok()));
            assert!(!answers, "`{key}`");
        }
    }

    #[test]
    fn the_place_decides_before_what_is_everywhere() {
        let page = press(KeyCode::PageDown, KeyModifiers::NONE);
        assert_eq!(action(KeyPlace::Question, &page), Some(Action::PageDown));
        let c = press(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(KeyPlace::Top, &c), Some(Action::Quit));
        assert_eq!(action(KeyPlace::Prompt, &c), Some(Action::Cancel));
        let shift_g = press(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(action(KeyPlace::Top, &shift_g), Some(Action::Last));
        let enter = press(KeyCode::Enter, KeyModifiers::SHIFT);
        assert_eq!(action(KeyPlace::Prompt, &enter), Some(Action::Newline));
        assert_eq!(action(KeyPlace::Question, &enter), None);
    }
}
