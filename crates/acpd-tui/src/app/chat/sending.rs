//! Prompts with their files, and messages to a running turn. A refused one becomes the draft again.

use std::path::Path;

use acp_wire::acp::{SteeringOutcome, steering_params};
use acp_wire::{ErrorObject, code};
use acpd_api::{SessionRef, SessionRowKey, Untrusted, method};
use acpd_view::text::Text;
use acpd_view::{Role, text};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Editor, Phase, Prompted, Reading};
use crate::app::prompt_draft::{Attached, PromptDraft, SessionDraft};
use crate::app::requests::{LinkId, Purpose};
use crate::app::{AppState, Effect, PromptFiles, Refused};
use crate::keymap::{Action, KeyPlace};

impl AppState {
    pub(super) fn send_prompt_typed(&mut self) {
        let Some(chat) = &mut self.chat else { return };
        if matches!(chat.phase, Phase::Stopped { .. }) {
            let hint = self.start_hint(KeyPlace::Prompt);
            self.flash(Role::Bad, hint);
            return;
        }
        if let Phase::Over(why) = &chat.phase {
            let why = why.clone();
            self.flash(Role::Bad, why);
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
                let session = SessionRef { agent: None, ..chat.key.exactly() };
                let purpose = Purpose::NextWaiting;
                self.out.send(link, method::SESSION_SHOW, &session, purpose);
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
            self.flash(Role::Warning, "a file of the last message is still being read");
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
            None => self.flash(Role::Good, "the agent has it"),
            Some(why) if self.give_back(words) => {
                let key = self.key_of(KeyPlace::Prompt, Action::Confirm);
                self.flash(Role::Warning, text!("{}: {} sends it as the next prompt", why, key));
            }
            Some(why) => {
                self.flash(Role::Warning, text!("{}: it is a draft in its conversation", why));
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
                self.flash(Role::Warning, Untrusted::from(error.message.as_str()));
            }
        }
        // The answer that releases the next prompt may not have arrived.
        if !undone.is_empty() {
            self.send_next();
        }
    }

    /// Pastes a text. The path of an image becomes a mention of that file.
    pub(super) fn paste_into_prompt(&mut self, pasted: &str) {
        let path = image_path(pasted, self.scene.home.as_deref());
        let Some(chat) = &mut self.chat else { return };
        match path {
            Some(path) => {
                let attached = Attached::elsewhere(&path);
                chat.editor.paste(&format!("{} ", attached.mark()));
                chat.editor.attach(attached);
            }
            None => chat.editor.paste(pasted),
        }
    }

    pub(super) fn read_files(&mut self, said: PromptDraft, is_steering: bool) {
        let Some(chat) = &mut self.chat else { return };
        self.out.push(Effect::ReadAttached(PromptFiles {
            key: chat.key.clone(),
            files: said.files(),
            can: chat.can.unwrap_or_default(),
        }));
        chat.reading = Some(Reading { said, is_steering });
    }

    /// Sends the prompt whose files were read, or restores it as the draft.
    pub(in crate::app) fn on_files_read(
        &mut self,
        of: &PromptFiles,
        read: Result<Vec<Value>, Refused>,
    ) {
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == of.key) else { return };
        let is_wanted = |reading: &mut Reading| reading.said.files() == of.files;
        let Some(Reading { said, is_steering }) = chat.reading.take_if(is_wanted) else { return };
        match read {
            Ok(blocks) if is_steering => self.steer_into(&of.key, said.with_files(blocks)),
            Ok(blocks) => self.send_prepared(said.with_files(blocks)),
            Err(refused) => {
                chat.refused = Some(refused);
                self.restore_draft(said);
            }
        }
    }

    pub(super) fn edit(&mut self) {
        let text = self.chat.as_ref().map(|chat| chat.editor.said().text);
        if let Some(text) = text {
            self.out.push(Effect::Edit(text));
        }
    }

    pub(in crate::app) fn on_edited(&mut self, edited: Result<String, Text>) {
        match (edited, &mut self.chat) {
            (Ok(text), Some(chat)) => chat.editor.rewrite(text),
            (Err(why), _) => self.flash(Role::Warning, why),
            (Ok(_), None) => {}
        }
    }
}

/// Returns the absolute path if the pasted text is the path of an image. Terminals paste the path
/// of a dropped file.
fn image_path(pasted: &str, home: Option<&str>) -> Option<String> {
    let text = pasted.trim();
    if text.is_empty() || text.contains('\n') {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let text = quoted('\'')
        .or_else(|| quoted('"'))
        .map_or_else(|| text.replace("\\ ", " "), str::to_owned);
    let text = text.strip_prefix("file://").map(str::to_owned).unwrap_or(text);
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => text,
    };
    let extension = Path::new(&path).extension()?.to_str()?.to_ascii_lowercase();
    let is_image = ["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.as_str());
    (is_image && Path::new(&path).has_root()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_path_is_found_however_it_is_pasted() {
        let path = |text: &str| image_path(text, Some("/home/ada"));
        assert_eq!(path("/tmp/a.png\n").as_deref(), Some("/tmp/a.png"));
        assert_eq!(path("'/tmp/a b.JPG'").as_deref(), Some("/tmp/a b.JPG"));
        assert_eq!(path("/tmp/a\\ b.webp ").as_deref(), Some("/tmp/a b.webp"));
        assert_eq!(path("file:///tmp/a.gif").as_deref(), Some("/tmp/a.gif"));
        // Where there are drives.
        assert_eq!(path(r#""C:\a b.png""#).is_some(), Path::new(r"C:\").has_root());
        assert_eq!(path("~/a.png").as_deref(), Some("/home/ada/a.png"));
        for text in ["a.png", "/tmp/a.txt", "see /tmp/a.png", "/a.png\n/b.png", "", "/tmp"] {
            assert_eq!(path(text), None, "{text}");
        }
    }
}
