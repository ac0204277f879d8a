//! Menus: modes, models and options, queued prompts, changed files.

use acp_wire::acp::{SetConfigOptionParams, SetModeParams};
use acpd_api::{QueuedPrompt, SessionRowKey, Untrusted};
use acpd_view::human::counted;
use acpd_view::text::Text;
use acpd_view::{ConfigOption, Id, Role, Settings, text};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::app::prompt_draft::PromptDraft;
use crate::app::requests::Purpose;
use crate::app::{AppState, LinkId};
use crate::keymap::Action;
use crate::pick_list::{PickList, PickRow};

#[derive(Debug, Clone)]
pub(super) enum MenuChoice {
    Mode(Untrusted),
    Value { option: Untrusted, value: Value },
    Block(Id),
    Waiting(Waiting),
}

pub(super) type Menu = PickList<MenuChoice>;

#[derive(Debug, Clone)]
pub(super) struct Waiting {
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

fn menu_of_settings(settings: &Settings) -> Option<Menu> {
    let row = |name: Text, is_current: bool, choice: MenuChoice| {
        PickRow::new(name, if is_current { "(now)" } else { "" }, choice)
    };
    let mut rows = Vec::new();
    let modes = settings.modes.as_ref().filter(|modes| !modes.available_modes.is_empty());
    if let Some(modes) = modes {
        rows.push(PickRow::heading("Mode"));
        rows.extend(modes.available_modes.iter().map(|mode| {
            let name = Text::from(mode.name.as_ref().unwrap_or(&mode.id));
            let is_current = modes.current_mode_id == mode.id;
            row(name, is_current, MenuChoice::Mode(mode.id.clone()))
        }));
    }
    // Some agents also report their modes as an option.
    let is_mode = |option: &&ConfigOption| {
        modes.is_some() && option.category.as_ref().is_some_and(|it| *it == "mode")
    };
    for option in settings.options.iter().filter(|option| !is_mode(option)) {
        rows.push(PickRow::heading(option.name.as_ref().unwrap_or(&option.id)));
        let current = option.value();
        let value = |value: Value, name: Text, is_current: bool| {
            row(name, is_current, MenuChoice::Value { option: option.id.clone(), value })
        };
        if let Value::Bool(on) = option.current_value {
            rows.push(value(json!(true), "on".into(), on));
            rows.push(value(json!(false), "off".into(), !on));
        }
        rows.extend(option.choices().map(|choice| {
            let name = Text::from(choice.name.as_ref().unwrap_or(&choice.value));
            value(json!(choice.value), name, choice.value == current)
        }));
    }
    PickList::of(rows)
}

pub(super) fn menu_of_queue(waiting: Vec<Waiting>) -> Option<Menu> {
    let row = |prompt: Waiting| {
        let label = text!("{}  {}", prompt.place, prompt.said.summary());
        PickRow::new(label, "", MenuChoice::Waiting(prompt))
    };
    let heading = PickRow::heading("Take back, to change it");
    PickList::of(std::iter::once(heading).chain(waiting.into_iter().map(row)))
}

pub(super) fn menu_of_files(files: Vec<(Id, Text)>) -> Option<Menu> {
    let heading = text!("{} changed in this turn", counted(files.len(), "file"));
    let row = |(block, name): (Id, Text)| PickRow::new(name, "", MenuChoice::Block(block));
    PickList::of(std::iter::once(PickRow::heading(heading)).chain(files.into_iter().map(row)))
}

impl AppState {
    /// Requests modes and options from the agent. This restores a sleeping session.
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

    pub(in crate::app) fn options(&mut self, link: LinkId, key: &SessionRowKey, result: &RawValue) {
        let settings = Settings::from_raw(result);
        let menu = menu_of_settings(&settings);
        self.out.leave(link);
        // The conversation may be closed by now.
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == *key) else { return };
        let modes = settings.modes.map(|modes| modes.available_modes);
        chat.conversation.folded.header_mut().modes = modes.unwrap_or_default();
        self.flash = None;
        chat.menu = menu;
        if chat.menu.is_none() {
            self.flash(Role::Warning, "the agent offers nothing to choose");
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
                match chat.menu.take().and_then(PickList::into_chosen) {
                    Some(MenuChoice::Block(block)) => chat.conversation.open(block),
                    Some(MenuChoice::Waiting(prompt)) => self.take_back(prompt),
                    Some(MenuChoice::Mode(id)) => {
                        let link = self.errand(&key.agent);
                        let params =
                            SetModeParams { session_id: key.session_id.raw(), mode_id: id.raw() };
                        let purpose = Purpose::Set(key.clone());
                        self.out.send(link, "session/set_mode", &params, purpose);
                    }
                    Some(MenuChoice::Value { option, value }) => {
                        let Ok(value) = to_raw_value(&value) else { return };
                        let link = self.errand(&key.agent);
                        let session_id = key.session_id.raw();
                        let params = SetConfigOptionParams::new(session_id, option.raw(), &value);
                        let purpose = Purpose::Set(key.clone());
                        self.out.send(link, "session/set_config_option", &params, purpose);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}
