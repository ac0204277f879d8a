//! A conversation whose session begins. It is visible at once, and prompts wait for the session.
//!
//! ```text
//!            answered ──▶ opening; prompts that waited are sent, one after the other
//!  starting ─┤
//!     ▲      refused ─┬─▶ not begun: prompts that waited are a draft ──── Enter ──┐
//!     │               └─▶ opened from the command line: the program ends with the error
//!     └───────────────────────────────────────────────────────────────────────────┘
//! ```

use acp_wire::acp::NewSessionResult;
use acp_wire::{ErrorObject, code};
use acpd_api::{SessionRowKey, Untrusted};
use acpd_client::error_data;
use acpd_view::text::Text;
use acpd_view::{Role, text};
use serde_json::json;
use serde_json::value::RawValue;

use super::{ChatScreen, Conversation, Phase};
use crate::app::prompt_draft::PromptDraft;
use crate::app::requests::{LinkId, Purpose};
use crate::app::{AppState, Effect};
use crate::fleet::shown;

#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) why: Text,
    pub(crate) hint: Option<Text>,
}

impl Refused {
    pub(super) fn of(error: &ErrorObject) -> Refused {
        let why = Text::from(&Untrusted::from(error.message.as_str()));
        let hint = error_data(error).and_then(|data| data.hint).as_ref().map(Text::from);
        Refused { why, hint }
    }

    pub(super) fn lines(&self, width: u16) -> Vec<Text> {
        let why = Text::of(Role::Bad, text!("! {}", self.why));
        let hint = self.hint.as_ref().map(|hint| Text::of(Role::Plain, text!("  {}", hint)));
        let room = usize::from(width.saturating_sub(2)).max(8);
        std::iter::once(why).chain(hint).flat_map(|line| line.wrap(room)).collect()
    }
}

impl ChatScreen {
    pub(in crate::app) fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    pub(super) fn is_starting_on(&self, link: LinkId) -> bool {
        matches!(self.phase, Phase::Starting { link: own, .. } if own == link)
    }
}

impl AppState {
    pub(in crate::app) fn begin(
        &mut self,
        agent: &Untrusted,
        prompt: Option<String>,
        is_from_top: bool,
    ) {
        self.close_chat();
        let key = SessionRowKey { agent: agent.clone(), session_id: Untrusted::default() };
        let prompt = prompt.as_deref().map(PromptDraft::from);
        self.show_chat(key, is_from_top).waits.extend(prompt);
        self.ask_for_session();
    }

    pub(super) fn ask_for_session(&mut self) {
        let Some(agent) = self.chat.as_ref().map(|chat| chat.key.agent.clone()) else { return };
        let link = self.errand(&agent);
        let params = json!({"cwd": self.scene.cwd, "mcpServers": []});
        self.out.send(link, "session/new", &params, Purpose::New);
        if let Some(chat) = &mut self.chat {
            chat.phase = Phase::Starting { link, since: self.now };
        }
    }

    pub(in crate::app) fn on_session_created(&mut self, link: LinkId, result: &RawValue) {
        let new = match NewSessionResult::from_raw(result) {
            Ok(new) => new,
            Err(error) => {
                let error = ErrorObject::new(code::INTERNAL, error.to_string());
                return self.on_start_failed(link, &error);
            }
        };
        self.out.leave(link);
        if let Some(chat) = self.chat.as_mut().filter(|chat| chat.is_starting_on(link)) {
            chat.key.session_id = new.session_id.into_owned().into();
            chat.conversation = Conversation::new(&chat.key.session_id);
            self.attach(0);
            self.send_next();
        }
    }

    fn on_start_failed(&mut self, link: LinkId, error: &ErrorObject) {
        self.out.leave(link);
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.is_starting_on(link)) else {
            return;
        };
        chat.phase = Phase::NotBegun;
        chat.refused = Some(Refused::of(error));
        if !chat.is_from_top {
            self.not_begun = Some(error.clone());
            self.out.push(Effect::Quit);
        }
        self.take_back_waiting();
    }

    pub(in crate::app) fn send_next(&mut self) {
        let is_next = |chat: &&mut ChatScreen| chat.reading.is_none() && !chat.waits.is_empty();
        let Some(chat) = self.chat.as_mut().filter(is_next) else { return };
        let prompt = chat.waits.remove(0);
        self.send_draft(prompt);
    }

    /// Restores waiting prompts as the draft. Returns whether there were any.
    pub(super) fn take_back_waiting(&mut self) -> bool {
        let Some(chat) = &mut self.chat else { return false };
        let reading = chat.reading.take().map(|reading| reading.said);
        let waits = reading.into_iter().chain(std::mem::take(&mut chat.waits));
        let waits = waits.reduce(PromptDraft::followed_by);
        let waited = waits.is_some();
        if let Some(said) = waits {
            chat.editor.give_back(said);
        }
        waited
    }

    /// Restores the texts of failed requests as drafts. The conversation shows the reason until the
    /// draft changes.
    pub(in crate::app) fn on_errand_error(&mut self, undone: Vec<Purpose>, error: &ErrorObject) {
        let mut of = None;
        for purpose in undone {
            match purpose {
                Purpose::Prompt(Some(words)) | Purpose::Steer(words) => {
                    of = Some(words.key.clone());
                    self.give_back(words);
                }
                Purpose::Options(key) | Purpose::Set(key) => of = Some(key),
                _ => {}
            }
        }
        let refused = Refused::of(error);
        match self.chat.as_mut().filter(|chat| of.as_ref() == Some(&chat.key)) {
            Some(chat) => chat.refused = Some(refused),
            None => {
                let session = of.and_then(|key| self.fleet.session(&key));
                let session = session.map(|session| text!("{}: ", shown(session)));
                self.flash(Role::Bad, text!("{}{}", session, refused.why));
            }
        }
    }

    /// Returns `false` if the connection neither starts nor prompts the conversation.
    pub(in crate::app) fn on_errand_failed(&mut self, link: LinkId, error: &ErrorObject) -> bool {
        let Some(chat) = &self.chat else { return false };
        let is_prompt = chat.prompts.iter().any(|prompt| prompt.link == link);
        if chat.is_starting_on(link) {
            self.on_start_failed(link, error);
        } else if is_prompt {
            self.on_prompt_ended(link, Some(error));
        } else {
            return false;
        }
        true
    }
}
