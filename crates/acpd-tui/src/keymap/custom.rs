//! The keys of this person: the table, with what `[tui.keys]` of the configuration changes in it.
//!
//! The keys of a question stay what they are, and what leads to a question cannot be one of them: so an answer takes
//! three steps, whatever is configured.

use std::collections::BTreeMap;

use acpd_api::Untrusted;
use acpd_view::text;
use acpd_view::text::Text;
use crossterm::event::{KeyEvent, KeyModifiers};

use super::{Action, Binding, Place, TABLE, code, is_key, modified, shown};

/// What terminals send for some keys is what they send for others.
const SAME: [(&str, &str); 8] = [
    ("ctrl-h", "backspace"),
    ("ctrl-i", "tab"),
    ("ctrl-m", "enter"),
    ("ctrl-[", "esc"),
    ("ctrl-4", "ctrl-\\"),
    ("ctrl-5", "ctrl-]"),
    ("ctrl-6", "ctrl-^"),
    ("ctrl-7", "ctrl-_"),
];

/// What can be a key, as a hint.
const KEYS: &str = "a key is a character, `enter`, `esc`, `tab`, `space`, `up`, `pgdn`, `f5` and the like, with `ctrl-`, `alt-` \
                    or `shift-` before it, and several have a space between them";

#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    rows: Vec<Row>,
}

/// A row of the table with the keys of this person.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) binding: &'static Binding,
    /// Its keys, with a space between them.
    pub(crate) keys: String,
}

/// What is wrong with the configured keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongKeys {
    pub message: Text,
    pub hint: Text,
}

impl Default for Keymap {
    fn default() -> Keymap {
        let row = |binding: &'static Binding| Row { binding, keys: binding.keys.to_owned() };
        Keymap { rows: TABLE.iter().map(row).collect() }
    }
}

impl Keymap {
    /// The table with these changes: keys by the name of an action, or of a place and an action, `blocks.copy`.
    pub(crate) fn with(changes: &BTreeMap<Untrusted, Untrusted>) -> Result<Keymap, WrongKeys> {
        let mut keymap = Keymap::default();
        // What is said of one place counts more than what is said of all.
        let (of_places, of_all): (Vec<_>, Vec<_>) =
            changes.iter().partition(|(name, _)| name.raw().contains('.'));
        for (name, keys) in of_all.into_iter().chain(of_places) {
            keymap.change(name, keys)?;
        }
        keymap.check()?;
        Ok(keymap)
    }

    /// What a key does at a place.
    pub(crate) fn action(&self, place: Place, key: &KeyEvent) -> Option<Action> {
        let fits = |row: &&Row| {
            (row.binding.place == place || row.binding.place == Place::Everywhere)
                && row.keys.split(' ').any(|name| is_key(name, key))
        };
        self.rows.iter().find(fits).map(|row| row.binding.action)
    }

    /// The rows of a place.
    pub(crate) fn rows(&self, place: Place) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.binding.place == place)
    }

    /// The first key of an action, as people write it.
    pub(crate) fn key(&self, place: Place, action: Action, is_unicode: bool) -> Text {
        let places = [place, Place::Everywhere];
        let mut rows = places.iter().flat_map(|place| self.rows(*place));
        let keys = rows.find(|row| row.binding.action == action).map(|row| row.keys.as_str());
        let first = keys.and_then(|keys| keys.split(' ').next()).unwrap_or_default();
        Text::from(&Untrusted::from(shown(first, is_unicode)))
    }

    fn change(&mut self, name: &Untrusted, keys: &Untrusted) -> Result<(), WrongKeys> {
        let (place, action) = match name.raw().split_once('.') {
            Some((place, action)) => (Some(place), action),
            None => (None, name.raw()),
        };
        let keys = normal(name, keys)?;
        let is_meant = |row: &&mut Row| {
            let Binding { place: of, action: does, .. } = row.binding;
            can_change(*of) && does.name() == action && place.is_none_or(|place| of.name() == place)
        };
        let mut is_one = false;
        for row in self.rows.iter_mut().filter(is_meant) {
            row.keys.clone_from(&keys);
            is_one = true;
        }
        if is_one { Ok(()) } else { Err(unknown(name)) }
    }

    /// Whether each key has one meaning, and none that it must not have.
    fn check(&self) -> Result<(), WrongKeys> {
        let answers = |key: &str| {
            let rows = self.rows(Place::Question).filter(|row| {
                use Action::{Choose, Confirm, Down, Up};
                matches!(row.binding.action, Choose | Up | Down | Confirm)
            });
            let mut keys = rows.flat_map(|row| row.keys.split(' '));
            keys.any(|name| name == key || (name == "1-9" && is_digit(key)))
        };
        for (at, row) in self.rows.iter().enumerate() {
            let Binding { place, action, .. } = *row.binding;
            for key in row.keys.split(' ') {
                let same = |other: &&Row| {
                    other.binding.place == place && other.keys.split(' ').any(|name| name == key)
                };
                if let Some(other) = self.rows[at + 1..].iter().find(same) {
                    let (one, two) = (name(row.binding), name(other.binding));
                    return Err(WrongKeys {
                        message: text!(
                            "`{}` has two meanings: `{}` and `{}`",
                            Untrusted::from(key),
                            Untrusted::from(one),
                            Untrusted::from(two.as_str())
                        ),
                        hint: text!("give `{}` another key, too", Untrusted::from(two)),
                    });
                }
                if place.is_typed() && is_letter(key) && row.keys != row.binding.keys {
                    let action = name(row.binding);
                    return Err(WrongKeys {
                        message: text!(
                            "`{}` cannot be the key of `{}`, where it is a letter like others",
                            Untrusted::from(key),
                            Untrusted::from(action)
                        ),
                        hint: "take one with ctrl or alt, or name the place: `blocks.copy = \"c\"`"
                            .into(),
                    });
                }
                let leads = matches!(action, Action::Question | Action::Blocks);
                if leads && answers(key) {
                    return Err(WrongKeys {
                        message: text!(
                            "`{}` cannot lead to a question, because it chooses or confirms there",
                            Untrusted::from(key)
                        ),
                        hint: "an answer takes three different steps".into(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Whether the keys of a place can be changed.
fn can_change(place: Place) -> bool {
    place != Place::Question
}

/// The keys as the table has them.
fn normal(name: &Untrusted, keys: &Untrusted) -> Result<String, WrongKeys> {
    let wrong = |why: Text| WrongKeys { message: text!("`{}`: {}", name, why), hint: KEYS.into() };
    let mut normal = Vec::new();
    for key in keys.raw().split_whitespace() {
        let key = if key.chars().count() > 1 { key.to_lowercase() } else { key.to_owned() };
        let (modifiers, rest) = modified(&key);
        let is_key = code(rest).is_some() && (modifiers != KeyModifiers::SHIFT || rest.len() > 1);
        if !is_key {
            return Err(wrong(text!("`{}` is no key", Untrusted::from(key))));
        }
        if let Some((one, other)) = SAME.iter().find(|(one, _)| *one == key) {
            return Err(wrong(text!("a terminal sends `{}` for `{}`", *other, *one)));
        }
        normal.push(key);
    }
    if normal.is_empty() { Err(wrong("no key is named".into())) } else { Ok(normal.join(" ")) }
}

fn unknown(wanted: &Untrusted) -> WrongKeys {
    let is_of_question = wanted.raw().starts_with("question.");
    let message = if is_of_question {
        "the keys of a question cannot be changed".into()
    } else {
        text!("there is no action `{}` of a key", wanted)
    };
    WrongKeys { message, hint: "docs/terminal.md has the names of all actions".into() }
}

fn name(binding: &Binding) -> String {
    format!("{}.{}", binding.place.name(), binding.action.name())
}

fn is_letter(key: &str) -> bool {
    key.chars().count() == 1 || key == "space"
}

fn is_digit(key: &str) -> bool {
    matches!(key.as_bytes(), [b'1'..=b'9'])
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;

    use super::*;

    fn with(changes: &[(&str, &str)]) -> Result<Keymap, (String, String)> {
        let changes = changes.iter().map(|(name, keys)| ((*name).into(), (*keys).into()));
        let wrong = |wrong: WrongKeys| (wrong.message.to_string(), wrong.hint.to_string());
        Keymap::with(&changes.collect()).map_err(wrong)
    }

    fn ctrl(char: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)
    }

    #[test]
    fn a_key_is_changed_everywhere_or_at_one_place() {
        let keymap = with(&[("cancel", "Ctrl-K f9"), ("blocks.copy", "c")]).unwrap();
        assert_eq!(keymap.action(Place::Prompt, &ctrl('k')), Some(Action::Cancel));
        assert_eq!(keymap.action(Place::Blocks, &ctrl('k')), Some(Action::Cancel));
        assert_eq!(keymap.action(Place::Prompt, &ctrl('c')), None);
        assert_eq!(keymap.key(Place::Prompt, Action::Cancel, true).as_str(), "^K");
        let c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
        assert_eq!(keymap.action(Place::Blocks, &c), Some(Action::Copy));
        assert_eq!(keymap.action(Place::Prompt, &c), None);
    }

    #[test]
    fn what_cannot_be_is_told_with_the_way_out() {
        let why = |changes: &[(&str, &str)]| with(changes).unwrap_err().0;
        assert_eq!(why(&[("cancle", "ctrl-k")]), "there is no action `cancle` of a key");
        assert_eq!(why(&[("cancel", "ctrl-k ctrl")]), "`cancel`: `ctrl` is no key");
        assert_eq!(why(&[("cancel", " ")]), "`cancel`: no key is named");
        assert_eq!(why(&[("cancel", "ctrl-m")]), "`cancel`: a terminal sends `enter` for `ctrl-m`");
        assert_eq!(
            why(&[("steer", "ctrl-o")]),
            "`ctrl-o` has two meanings: `prompt.steer` and `prompt.options`"
        );
        for action in ["prompt.steer", "everywhere.redraw"] {
            assert!(why(&[(action, "s")]).contains("where it is a letter like others"));
        }
        assert!(with(&[("steer", "ctrl-o"), ("options", "ctrl-s")]).is_ok(), "they are swapped");
    }

    #[test]
    fn no_configuration_makes_an_answer_of_fewer_steps() {
        let why = |changes: &[(&str, &str)]| with(changes).unwrap_err().0;
        let changed = why(&[("question.confirm", "a")]);
        assert_eq!(changed, "the keys of a question cannot be changed");
        for key in ["down", "j", "1"] {
            let found = why(&[("top.question", key), ("top.down", "f9")]);
            assert!(found.contains("cannot lead to a question"), "{found}");
        }
        let keymap = with(&[("confirm", "ctrl-k"), ("down", "f8")]).unwrap();
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(keymap.action(Place::Question, &enter), Some(Action::Confirm));
        assert_eq!(keymap.action(Place::Prompt, &enter), None);
    }

    #[test]
    fn the_daemon_takes_the_names_that_the_screens_know() {
        let known = acpd_api::KEY_NAMES.iter().flat_map(|(place, actions)| {
            actions.iter().map(move |action| format!("{place}.{action}"))
        });
        let own = TABLE.iter().filter(|binding| can_change(binding.place)).map(name);
        assert_eq!(known.collect::<Vec<_>>(), own.collect::<Vec<_>>());
    }

    #[test]
    fn the_document_names_every_action() {
        let document = include_str!("../../../../docs/terminal.md");
        for binding in TABLE.iter().filter(|binding| can_change(binding.place)) {
            let name = format!("`{}`", binding.action.name());
            assert!(document.contains(&name), "{name} is missing in docs/terminal.md");
        }
    }
}
