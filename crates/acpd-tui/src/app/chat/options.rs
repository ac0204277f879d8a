//! Lists to choose from: modes, models and options, queued prompts, changed files.

use acp_wire::acp::{SetConfigOptionParams, SetModeParams};
use acpd_api::{QueuedPrompt, SessionRowKey, Untrusted};
use acpd_view::text::Text;
use acpd_view::{ConfigOption, Id, Role, Settings, Style, text};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::app::prompt_draft::PromptDraft;
use crate::app::requests::Purpose;
use crate::app::{AppState, LinkId};
use crate::canvas::CURSOR;
use crate::keymap::Action;

/// List to choose from.
#[derive(Debug)]
pub(super) struct Menu {
    entries: Vec<Entry>,
    at: usize,
}

#[derive(Debug, Clone)]
enum Entry {
    Heading(Text),
    Mode { id: Untrusted, name: Text, is_current: bool },
    Value { option: Untrusted, value: Value, name: Text, is_current: bool },
    Place { block: Id, name: Text },
    Waiting(Waiting),
}

/// A queued prompt.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Number in the queue.
    pub(super) place: u32,
    pub(super) ticket: u64,
    pub(super) said: PromptDraft,
}

impl Waiting {
    pub(super) fn of(prompt: &QueuedPrompt) -> Waiting {
        let said = PromptDraft { in_place_of: Some(prompt.ticket), ..PromptDraft::read(prompt) };
        Waiting { place: prompt.place, ticket: prompt.ticket, said }
    }
}

impl Menu {
    /// Returns the menu of modes and options.
    fn of(settings: &Settings) -> Menu {
        let mut entries = Vec::new();
        let modes = settings.modes.as_ref().filter(|modes| !modes.available_modes.is_empty());
        if let Some(modes) = modes {
            entries.push(Entry::Heading("Mode".into()));
            entries.extend(modes.available_modes.iter().map(|mode| Entry::Mode {
                id: mode.id.clone(),
                name: Text::from(mode.name.as_ref().unwrap_or(&mode.id)),
                is_current: modes.current_mode_id == mode.id,
            }));
        }
        // Some agents report their modes as an option, too.
        let is_told = |option: &&ConfigOption| {
            modes.is_some() && option.category.as_ref().is_some_and(|it| *it == "mode")
        };
        for option in settings.options.iter().filter(|option| !is_told(option)) {
            let name = option.name.as_ref().unwrap_or(&option.id);
            entries.push(Entry::Heading(Text::from(name)));
            let current = option.value();
            let value = |value: Value, name: Text, is_current: bool| Entry::Value {
                option: option.id.clone(),
                value,
                name,
                is_current,
            };
            if let Value::Bool(on) = option.current_value {
                entries.push(value(json!(true), "on".into(), on));
                entries.push(value(json!(false), "off".into(), !on));
            }
            entries.extend(option.choices().map(|choice| {
                let name = Text::from(choice.name.as_ref().unwrap_or(&choice.value));
                value(json!(choice.value), name, choice.value == current)
            }));
        }
        Menu::with(entries)
    }

    /// Returns the menu of queued prompts.
    pub(super) fn of_queue(waiting: Vec<Waiting>) -> Menu {
        let heading = Entry::Heading("Take back, to change it".into());
        let waiting = waiting.into_iter().map(Entry::Waiting);
        Menu::with(std::iter::once(heading).chain(waiting).collect())
    }

    fn with(entries: Vec<Entry>) -> Menu {
        let at = entries.iter().position(|entry| !matches!(entry, Entry::Heading(_)));
        Menu { entries, at: at.unwrap_or(0) }
    }

    /// Returns the menu of files that a turn has changed, if there are any.
    pub(super) fn of_files(files: Vec<(Id, Text)>) -> Option<Menu> {
        let count = files.len();
        let heading = match count {
            1 => text!("1 file changed in this turn"),
            _ => text!("{} files changed in this turn", count),
        };
        let places = files.into_iter().map(|(block, name)| Entry::Place { block, name });
        let entries = std::iter::once(Entry::Heading(heading)).chain(places).collect();
        (count > 0).then(|| Menu::with(entries))
    }

    /// Returns the lines of the menu, and the index of the chosen one.
    pub(super) fn lines(&self) -> (Vec<Text>, usize) {
        let line = |(at, entry): (usize, &Entry)| {
            let is_chosen = at == self.at;
            let mark = if is_chosen { CURSOR } else { " " };
            let line = Text::of(Style::of(Role::Name).strong(), text!(" {} ", mark));
            let (name, is_current) = match entry {
                Entry::Heading(name) => {
                    return Text::of(Style::of(Role::Dim).strong(), text!(" {}", name));
                }
                Entry::Place { name, .. } => {
                    return line + name;
                }
                Entry::Mode { name, is_current, .. } | Entry::Value { name, is_current, .. } => {
                    (name.clone(), *is_current)
                }
                Entry::Waiting(prompt) => {
                    (text!("{}  {}", prompt.place, prompt.said.summary()), false)
                }
            };
            let style =
                if is_chosen { Style::of(Role::Plain).strong() } else { Role::Plain.into() };
            let now = if is_current { "  (now)" } else { "" };
            line.and(style, name).and(Role::Dim, now)
        };
        (self.entries.iter().enumerate().map(line).collect(), self.at)
    }

    fn go(&mut self, by: isize) {
        let mut at = self.at;
        loop {
            let Some(next) = at.checked_add_signed(by).filter(|at| *at < self.entries.len()) else {
                return;
            };
            at = next;
            if !matches!(self.entries[at], Entry::Heading(_)) {
                self.at = at;
                return;
            }
        }
    }
}

impl AppState {
    /// Asks the agent for modes and options. This restores a sleeping session.
    pub(in crate::app) fn ask_options(&mut self) {
        if self.chat.as_ref().is_some_and(super::ChatScreen::is_beginning) {
            self.flash(Role::Warning, "the session is not there yet");
            return;
        }
        let Some(key) = self.chat.as_ref().map(|chat| chat.key.clone()) else { return };
        let cwd = self.chat_session().map(|session| session.cwd.clone());
        let link = self.errand(&key.agent);
        let params = json!({"sessionId": key.session_id, "cwd": cwd, "mcpServers": []});
        let purpose = Purpose::Options(key);
        self.out.send(link, "session/resume", &params, purpose);
        self.flash(Role::Dim, "asking the agent what there is to choose");
    }

    /// Shows the modes and options.
    pub(in crate::app) fn options(&mut self, link: LinkId, key: &SessionRowKey, result: &RawValue) {
        let settings = Settings::from_raw(result);
        let menu = Menu::of(&settings);
        self.out.leave(link);
        // The conversation may have been closed meanwhile.
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == *key) else { return };
        let modes = settings.modes.map(|modes| modes.available_modes);
        chat.conversation.set_modes(modes.unwrap_or_default());
        self.flash = None;
        if menu.entries.is_empty() {
            self.flash(Role::Warning, "the agent offers nothing to choose");
        } else {
            chat.menu = Some(menu);
        }
    }

    pub(super) fn menu_key(&mut self, action: Option<Action>) {
        let Some(chat) = &mut self.chat else { return };
        let Some(menu) = &mut chat.menu else { return };
        match action {
            Some(Action::Up) => menu.go(-1),
            Some(Action::Down) => menu.go(1),
            Some(Action::Back) => chat.menu = None,
            Some(Action::Confirm) => {
                let key = chat.key.clone();
                let chosen =
                    chat.menu.take().and_then(|menu| menu.entries.into_iter().nth(menu.at));
                match chosen {
                    Some(Entry::Place { block, .. }) => chat.conversation.open(block),
                    Some(Entry::Waiting(prompt)) => self.take_back(prompt),
                    Some(entry) => self.set(&key, entry),
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, key: &SessionRowKey, entry: Entry) {
        let (session_id, purpose) = (key.session_id.raw(), Purpose::Set(key.clone()));
        match entry {
            Entry::Heading(_) | Entry::Place { .. } | Entry::Waiting(_) => {}
            Entry::Mode { id, .. } => {
                let link = self.errand(&key.agent);
                let params = SetModeParams { session_id, mode_id: id.raw() };
                self.out.send(link, "session/set_mode", &params, purpose);
            }
            Entry::Value { option, value, .. } => {
                let Ok(value) = to_raw_value(&value) else { return };
                let link = self.errand(&key.agent);
                let params = SetConfigOptionParams::new(session_id, option.raw(), &value);
                self.out.send(link, "session/set_config_option", &params, purpose);
            }
        }
    }
}
