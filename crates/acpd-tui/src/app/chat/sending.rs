//! Prompts and messages to a running turn. A refused one becomes the draft again.

use acp_wire::acp::{SteeringOutcome, steering_params};
use acp_wire::{ErrorObject, code};
use acpd_api::{SessionRowKey, Untrusted, method};
use acpd_view::{Role as Look, text};
use serde_json::value::RawValue;

use super::starting::Refused;
use super::{Editor, Phase, Prompted};
use crate::app::AppState;
use crate::app::prompt_draft::{PromptDraft, SessionDraft};
use crate::app::requests::{LinkId, Purpose};
use crate::keymap::{Action, KeyPlace};

impl AppState {
    pub(super) fn send_prompt_typed(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if matches!(chat.phase, Phase::Stopped { .. }) {
            let hint = self.start_hint(KeyPlace::Prompt);
            self.flash(Look::Bad, hint);
            return;
        }
        if let Phase::Over(why) = &chat.phase {
            let why = why.clone();
            self.flash(Look::Bad, why);
            return;
        }
        if chat.phase == Phase::NotBegun {
            chat.refused = None;
            chat.waits.extend(chat.editor.take());
            return self.ask_for_session();
        }
        if chat.may_be_answer() {
            chat.doubted = Some(chat.editor.said().text);
            return;
        }
        if chat.is_starting() || chat.reading.is_some() || !chat.waits.is_empty() {
            chat.waits.extend(chat.editor.take());
            return;
        }
        if let Some(said) = chat.editor.take() {
            self.send_draft(said);
        }
    }

    pub(super) fn send_draft(&mut self, said: PromptDraft) {
        if said.files().is_empty() {
            self.send_prepared(said);
        } else {
            self.read_files(said, false);
        }
    }

    /// Sends a prompt with its files, and requests the next waiting one.
    pub(super) fn send_prepared(&mut self, said: PromptDraft) {
        let Some(chat) = &mut self.chat else { return };
        let key = chat.key.clone();
        let after = chat.conversation.folded.blocks().last().map(|block| block.id);
        chat.conversation.follow();
        let link = self.errand(&key.agent);
        self.send_prompt(link, &key.session_id, &said, None);
        if let Some(chat) = &mut self.chat {
            chat.prompts.push(Prompted { link, said, after });
            if !chat.waits.is_empty() {
                // The answer arrives after everything before it is on disk.
                self.out.send(link, method::SESSION_SHOW, &key.exactly(), Purpose::NextWaiting);
            }
        }
    }

    /// Restores a prompt as the draft, together with prompts that wait for it.
    pub(super) fn restore_draft(&mut self, said: PromptDraft) {
        self.take_back_waiting();
        if let Some(chat) = &mut self.chat {
            chat.editor.give_back(said);
        }
    }

    pub(super) fn steer(&mut self) {
        if !self.is_turn_running() {
            return self.send_prompt_typed();
        }
        let Some(chat) = &mut self.chat else { return };
        if chat.reading.is_some() {
            self.flash(Look::Warning, "a file of the last message is still being read");
            return;
        }
        let Some(said) = chat.editor.take() else { return };
        if !said.files().is_empty() {
            return self.read_files(said, true);
        }
        let key = chat.key.clone();
        self.steer_into(&key, said);
    }

    pub(in crate::app) fn steer_into(&mut self, key: &SessionRowKey, said: PromptDraft) {
        let link = self.errand(&key.agent);
        let prompt = said.blocks();
        let params = steering_params(key.session_id.raw(), &prompt);
        let purpose = Purpose::Steer(SessionDraft { key: key.clone(), said });
        self.out.send(link, "_session/steering", &params, purpose);
    }

    pub(in crate::app) fn on_steered(
        &mut self,
        link: LinkId,
        words: SessionDraft,
        result: &RawValue,
    ) {
        let why = match SteeringOutcome::from_raw(result) {
            Some(SteeringOutcome::Injected | SteeringOutcome::StartedNewTurn) => None,
            Some(SteeringOutcome::PromptRequired) => Some("the turn is over"),
            _ => Some("the agent did not take the message"),
        };
        match why {
            None => self.flash(Look::Good, "the agent has it"),
            Some(why) if self.give_back(words) => {
                let key = self.key_of(KeyPlace::Prompt, Action::Confirm);
                self.flash(Look::Warning, text!("{}: {} sends it as the next prompt", why, key));
            }
            Some(why) => {
                self.flash(Look::Warning, text!("{}: it is a draft in its conversation", why));
            }
        }
        self.out.leave(link);
    }

    /// Restores a text as its conversation's draft. Returns whether that conversation is open.
    pub(in crate::app) fn give_back(&mut self, SessionDraft { key, said }: SessionDraft) -> bool {
        self.editor_of(&key).give_back(said);
        self.chat.as_ref().is_some_and(|chat| chat.key == key)
    }

    pub(crate) fn unsent(&self) -> impl Iterator<Item = String> {
        let open = self.chat.iter().map(|chat| &chat.editor);
        let drafts = open.chain(self.drafts.values()).map(Editor::said);
        drafts.filter(|said| !said.is_empty()).map(|said| said.text)
    }

    pub(super) fn editor_of(&mut self, key: &SessionRowKey) -> &mut Editor {
        match self.chat.as_mut().filter(|chat| chat.key == *key) {
            Some(chat) => &mut chat.editor,
            None => self.drafts.entry(key.clone()).or_default(),
        }
    }

    pub(in crate::app) fn on_prompt_ended(&mut self, link: LinkId, error: Option<&ErrorObject>) {
        let undone = self.out.leave(link);
        let Some(chat) = &mut self.chat else { return };
        let at = chat.prompts.iter().position(|prompt| prompt.link == link);
        let Some(prompt) = at.map(|at| chat.prompts.remove(at)) else { return };
        if let Some(error) = error {
            // Errors of a turn that began are also in the journal. A queued prompt that was taken
            // back is already the draft.
            let was_taken = error.code == code::CANCELLED;
            let is_free = !was_taken || chat.editor.is_empty();
            let was_waiting = !chat.conversation.has_prompt(&prompt.said.text, prompt.after);
            if !was_taken {
                chat.refused = Some(Refused::of(error));
            }
            if was_waiting && is_free {
                self.restore_draft(prompt.said);
            }
            if was_taken {
                self.flash(Look::Warning, Untrusted::from(error.message.as_str()));
            }
        }
        // The answer that releases the next prompt may not have arrived.
        if !undone.is_empty() {
            self.send_next();
        }
    }
}
