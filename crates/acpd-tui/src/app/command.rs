//! The line that begins with `:`: what keys do, by its name, and a few verbs that take words.

use acpd_api::{RenameParams, SessionRowKey, Untrusted, method};
use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::widgets::{Clear, Widget as _};

use super::chat::Chat;
use super::requests::{Link, Purpose, Wish};
use super::{Effect, State};
use crate::canvas::Canvas;
use crate::input::Input;
use crate::keymap::{self, Action, Place};
use crate::suggest::{Suggestion, Suggestions, fits};

/// Rows of the list at most.
const ROWS: usize = 8;

/// What is typed, and what it may become.
#[derive(Debug, Default)]
pub(super) struct CommandLine {
    input: Input,
    list: Option<Suggestions>,
}

/// Something to do by its name.
struct Verb {
    name: String,
    /// What stands behind it, if anything does.
    takes: Option<&'static str>,
    words: &'static str,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    /// What a key does at a place.
    Act(Place, Action),
    /// This, with the words behind the verb.
    Call(fn(&mut State, &str) -> Vec<Effect>),
}

/// A verb that is no action of a key, or takes words.
struct Own {
    name: &'static str,
    takes: Option<&'static str>,
    words: &'static str,
    /// There is nothing like it in the list of sessions.
    only_in_chat: bool,
    call: fn(&mut State, &str) -> Vec<Effect>,
}

const fn own(
    name: &'static str,
    takes: Option<&'static str>,
    words: &'static str,
    call: fn(&mut State, &str) -> Vec<Effect>,
) -> Own {
    Own { name, takes, words, only_in_chat: false, call }
}

const fn of_chat(own: Own) -> Own {
    Own { only_in_chat: true, ..own }
}

/// They come before those of keys.
const OWN: [Own; 6] = [
    own("cancel", None, "cancel the turn", |state, _| state.cancel_now()),
    own("rename", Some("NAME"), "call the session so", State::rename),
    own("new", Some("AGENT"), "begin a session here", State::begin_with),
    of_chat(own("model", Some("MODEL"), "answer with this model", |state, to| {
        state.wish("model", to)
    })),
    of_chat(own("mode", Some("MODE"), "work in this mode", |state, to| state.wish("mode", to))),
    own("q", None, "leave; nothing stops", |state, _| state.leave()),
];

impl CommandLine {
    /// Draws it above the keys.
    pub(super) fn view(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let rows = self.list.as_ref().map_or(0, |list| list.len().min(ROWS));
        let rows = u16::try_from(rows).unwrap_or(0).min(area.height.saturating_sub(1));
        let bottom = area.bottom().saturating_sub(1);
        let pane = Rect { y: bottom.saturating_sub(rows), height: rows + 1, ..area };
        Clear.render(pane.intersection(canvas.buffer().area), canvas.buffer());
        let lines = self.list.iter().flat_map(|list| list.lines(usize::from(rows)));
        for (y, line) in (pane.y..bottom).zip(lines) {
            canvas.line(area.x, y, area.width, &line);
        }
        let (shown, _) = self.input.shown(usize::from(area.width.saturating_sub(4)));
        let line = Line::of(Style::of(Role::Name).strong(), " :").and(Role::Plain, shown);
        canvas.line(area.x, bottom, area.width, &line.and(Role::Name, "█"));
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.input.insert(text);
    }
}

impl State {
    /// Lets a verb be typed.
    pub(super) fn open_command(&mut self) {
        self.command = Some(CommandLine::default());
        self.suggest_verbs();
    }

    /// Takes a key while a verb is typed.
    pub(super) fn command_key(&mut self, action: Option<Action>, key: &KeyEvent) -> Vec<Effect> {
        let Some(CommandLine { input, list }) = &mut self.command else { return Vec::new() };
        match (action, list) {
            (Some(Action::Up), Some(list)) => list.go(-1),
            (Some(Action::Down), Some(list)) => list.go(1),
            (Some(Action::Back), _) => self.command = None,
            (Some(Action::Confirm), _) => return self.run_typed(),
            (Some(Action::Complete), Some(list)) => {
                let value = list.chosen().value.clone();
                *input = Input::default();
                input.insert(&value);
                self.suggest_verbs();
            }
            _ => {
                input.key(key);
                self.suggest_verbs();
            }
        }
        Vec::new()
    }

    /// Lists what the line may become.
    pub(super) fn suggest_verbs(&mut self) {
        let Some(command) = &self.command else { return };
        let typed = command.input.text().to_owned();
        let list = match typed.split_once(' ') {
            None => {
                let verbs = self.verbs();
                let names: Vec<&str> = verbs.iter().map(|verb| verb.name.as_str()).collect();
                let item = |at: usize| {
                    let Verb { name, takes, words, .. } = &verbs[at];
                    let value = if takes.is_some() { format!("{name} ") } else { name.clone() };
                    let takes = takes.map(|takes| text!(" {}", takes));
                    let label = text!("{}{}", Untrusted::from(name.as_str()), takes);
                    Suggestion { value, label, note: (*words).into() }
                };
                Suggestions::of(fits(&typed, &names).into_iter().map(item))
            }
            Some((verb, words)) => {
                let known = self.known_words(verb);
                let item = |at: usize| {
                    let label = Text::from(&Untrusted::from(known[at].as_str()));
                    let value = format!("{verb} {}", known[at]);
                    Suggestion { value, label, note: Text::default() }
                };
                Suggestions::of(fits(words, &known).into_iter().map(item))
            }
        };
        if let Some(command) = &mut self.command {
            command.list = list;
        }
    }

    /// All verbs of this screen. What takes words comes first, then what keys do.
    fn verbs(&self) -> Vec<Verb> {
        let is_chat = self.chat.is_some();
        let own = OWN.iter().filter(|own| is_chat || !own.only_in_chat);
        let mut verbs: Vec<Verb> = own
            .map(|own| Verb {
                name: own.name.to_owned(),
                takes: own.takes,
                words: own.words,
                does: Does::Call(own.call),
            })
            .collect();
        let places = if is_chat { &[Place::Prompt, Place::Blocks][..] } else { &[Place::Top] };
        for row in places.iter().chain(&[Place::Everywhere]).flat_map(|place| keymap::rows(*place))
        {
            let name = row.action.name();
            if is_verb(row.action) && verbs.iter().all(|verb| verb.name != name) {
                let does = Does::Act(row.place, row.action);
                verbs.push(Verb { name, takes: None, words: row.words, does });
            }
        }
        verbs
    }

    /// What may stand behind a verb.
    fn known_words(&self, verb: &str) -> Vec<String> {
        let of_option = |category| {
            let header = self.chat.as_ref().map(Chat::header);
            let option = header.and_then(|header| header.option(category));
            let choices = option.into_iter().flat_map(acpd_view::ConfigOption::choices);
            choices.map(|choice| choice.value.raw().to_owned()).collect()
        };
        match verb {
            "new" => self.fleet.agents().iter().map(|agent| agent.name.raw().to_owned()).collect(),
            "model" => of_option("model"),
            "mode" => of_option("mode"),
            _ => Vec::new(),
        }
    }

    /// Does what is typed; of a verb that is not whole, what is chosen.
    fn run_typed(&mut self) -> Vec<Effect> {
        let Some(CommandLine { input, list }) = self.command.take() else { return Vec::new() };
        let typed = input.text().trim().to_owned();
        let (name, words) = typed.split_once(' ').unwrap_or((&typed, ""));
        let chosen = list.map(|list| list.chosen().value.trim().to_owned());
        let verbs = self.verbs();
        let find = |name: &str| verbs.iter().find(|verb| verb.name == name);
        let found =
            find(name).or_else(|| chosen.as_deref().filter(|_| words.is_empty()).and_then(find));
        match found {
            None if typed.is_empty() => Vec::new(),
            None => {
                let (typed, key) =
                    (Untrusted::from(name), self.key_of(Place::List, Action::Complete));
                let words =
                    text!("there is no verb `{}`: {} completes those that there are", typed, key);
                self.flash(Role::Warning, words);
                Vec::new()
            }
            Some(Verb { name, takes: Some(_), .. }) if words.is_empty() => {
                let mut input = Input::default();
                input.insert(&format!("{name} "));
                self.command = Some(CommandLine { input, list: None });
                self.suggest_verbs();
                Vec::new()
            }
            Some(Verb { does: Does::Call(call), .. }) => call(self, words.trim()),
            Some(Verb { does: Does::Act(place, action), .. }) => {
                let (place, action) = (*place, *action);
                if let Some(chat) = self.chat.as_mut().filter(|_| place == Place::Prompt) {
                    chat.go_to_prompt();
                }
                let no_key = KeyEvent::new(KeyCode::Null, KeyModifiers::NONE);
                self.act(place, Some(action), &no_key)
            }
        }
    }

    /// The session that verbs are about.
    fn session_meant(&self) -> Option<SessionRowKey> {
        match &self.chat {
            Some(chat) => Some(chat.key().clone()),
            None => self.selected_session(),
        }
    }

    fn rename(&mut self, name: &str) -> Vec<Effect> {
        let Some(key) = self.session_meant() else {
            self.flash(Role::Warning, "no session is selected");
            return Vec::new();
        };
        let session = key.exactly();
        let params = RenameParams { session, name: Some(name.to_owned()) };
        vec![self.requests.send(Link::Fleet, method::SESSION_RENAME, &params, Purpose::Rename)]
    }

    fn begin_with(&mut self, agent: &str) -> Vec<Effect> {
        if !self.fleet.agents().iter().any(|known| known.name == agent) {
            self.flash(Role::Warning, text!("there is no agent `{}`", Untrusted::from(agent)));
            return Vec::new();
        }
        let is_from_top = self.chat.as_ref().is_none_or(Chat::is_from_top);
        self.begin(&agent.into(), None, is_from_top)
    }

    fn wish(&mut self, category: &'static str, words: &str) -> Vec<Effect> {
        self.ask_options(Some(Wish { category, words: words.to_owned() }))
    }

    fn cancel_now(&mut self) -> Vec<Effect> {
        match self.session_meant() {
            Some(key) => self.cancel_session(&key),
            None => {
                self.flash(Role::Warning, "no session is selected");
                Vec::new()
            }
        }
    }

    fn leave(&mut self) -> Vec<Effect> {
        if self.chat.is_some() { self.detach() } else { vec![Effect::Quit] }
    }
}

/// Whether an action is something to say, and not a way to move or to type.
fn is_verb(action: Action) -> bool {
    !matches!(
        action,
        Action::Back
            | Action::Choose
            | Action::Command
            | Action::Complete
            | Action::Confirm
            | Action::Down
            | Action::First
            | Action::Last
            | Action::Newline
            | Action::NextAgent
            | Action::NextPrompt
            | Action::PageDown
            | Action::PageUp
            | Action::PreviousPrompt
            | Action::SearchNewer
            | Action::SearchOlder
            | Action::Up
    )
}
