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
    /// A request that changes a setting, and its parameters.
    Set(&'static str, Value),
    Block(Id),
    Waiting(PromptDraft),
}

pub(super) type Menu = PickList<MenuChoice>;

fn menu_of_settings(session: &Untrusted, settings: &Settings) -> Option<Menu> {
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
            let params = SetModeParams { session_id: session.raw(), mode_id: mode.id.raw() };
            row(name, is_current, MenuChoice::Set("session/set_mode", json!(params)))
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
            let value = to_raw_value(&value).ok()?;
            let params = SetConfigOptionParams::new(session.raw(), option.id.raw(), &value);
            let choice = MenuChoice::Set("session/set_config_option", json!(params));
            Some(row(name, is_current, choice))
        };
        if let Value::Bool(on) = option.current_value {
            rows.extend(value(json!(true), "on".into(), on));
            rows.extend(value(json!(false), "off".into(), !on));
        }
        rows.extend(option.choices().filter_map(|choice| {
            let name = Text::from(choice.name.as_ref().unwrap_or(&choice.value));
            value(json!(choice.value), name, choice.value == current)
        }));
    }
    PickList::of(rows)
}

pub(super) fn menu_of_queue(prompts: &[QueuedPrompt]) -> Option<Menu> {
    let row = |prompt: &QueuedPrompt| {
        let said = PromptDraft::read(prompt);
        let label = text!("{}  {}", prompt.place, said.summary());
        PickRow::new(label, "", MenuChoice::Waiting(said))
    };
    let heading = PickRow::heading("Take back, to change it");
    PickList::of(std::iter::once(heading).chain(prompts.iter().map(row)))
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
        let menu = menu_of_settings(&key.session_id, &settings);
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
                    Some(MenuChoice::Set(method, params)) => {
                        let link = self.errand(&key.agent);
                        self.out.send(link, method, &params, Purpose::Set(key));
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}
