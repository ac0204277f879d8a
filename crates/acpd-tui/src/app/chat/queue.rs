//! Queued prompts: the user takes one back into the editor. It keeps its place, and is sent when
//! the user sends it again.

use acpd_api::{QueueInfo, QueueRemoveParams, SessionRowKey, method};
use acpd_view::Role;
use serde_json::value::RawValue;

use super::options::menu_of_queue;
use crate::app::prompt_draft::{PromptDraft, SessionDraft};
use crate::app::requests::Purpose;
use crate::app::{AppState, CLIENT, LinkId, read};

impl AppState {
    pub(super) fn ask_queue(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if let Some(said) = chat.waits.pop() {
            let key = chat.key.clone();
            self.give_back(SessionDraft { key, said });
            return;
        }
        let (session, purpose) = (chat.key.exactly(), Purpose::Queue(chat.key.clone()));
        self.out.send(LinkId::Fleet, method::SESSION_QUEUE, &session, purpose);
    }

    pub(in crate::app) fn queue(&mut self, key: &SessionRowKey, result: &RawValue) {
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == *key) else { return };
        let prompts = read::<QueueInfo>(result).map(|info| info.prompts).unwrap_or_default();
        match &prompts[..] {
            [] => self.flash(Role::Warning, "no prompt waits"),
            [only] => self.take_back(PromptDraft::read(only)),
            prompts => chat.menu = menu_of_queue(prompts),
        }
    }

    pub(super) fn take_back(&mut self, said: PromptDraft) {
        let (Some(chat), Some(ticket)) = (&self.chat, said.in_place_of) else { return };
        let (session, by) = (chat.key.exactly(), Some(format!("{CLIENT} chat")));
        let params = QueueRemoveParams { session, ticket, by };
        let purpose = Purpose::TakeBack(SessionDraft { key: chat.key.clone(), said });
        self.out.send(LinkId::Fleet, method::SESSION_QUEUE_REMOVE, &params, purpose);
    }

    pub(in crate::app) fn on_taken_back(&mut self, SessionDraft { key, said }: SessionDraft) {
        let editor = self.editor_of(&key);
        // The answer to the prompt's own request may have come first, with only the text.
        if editor.said().text == said.text {
            editor.set(said);
        } else {
            editor.put(said);
        }
        self.flash(Role::Good, "taken back: nothing of it is sent until you send it again");
    }
}
