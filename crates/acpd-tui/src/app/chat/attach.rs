//! What is attached to a prompt from elsewhere: images, and what the person writes in an editor.

use acpd_view::text::Text;
use acpd_view::{Role, text};
use serde_json::Value;

use super::starting::Refused;
use super::{Chat, Reading};
use crate::app::said::{Attached, Said};
use crate::app::{Effect, ImageFrom, Link, PromptFiles, State, UnfitFile};
use crate::image::{self, Image};

impl Chat {
    /// Why there can be no images, if that is so.
    pub(super) fn no_images(&self) -> Option<Text> {
        match self.can.map(|can| can.image) {
            Some(true) => None,
            Some(false) => Some(text!("{} takes no images", self.key.agent)),
            // It is told before the first prompt is sent.
            None if self.is_starting() => None,
            None => Some(text!("{} has not told yet whether it takes images", self.key.agent)),
        }
    }
}

impl State {
    /// Attaches the image on the clipboard.
    pub(super) fn attach_image(&mut self) -> Vec<Effect> {
        let Some(chat) = &self.chat else { return Vec::new() };
        match chat.no_images() {
            Some(why) => {
                self.flash(Role::Warning, why);
                Vec::new()
            }
            None => vec![Effect::ReadImage(chat.link, ImageFrom::Clipboard)],
        }
    }

    /// Pastes a text into the prompt; the path of an image becomes that image.
    pub(super) fn paste_into_prompt(&mut self, pasted: &str) -> Vec<Effect> {
        let path = image::path_of(pasted, self.scene.home.as_deref());
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let Some(path) = path else {
            chat.editor.paste(pasted);
            return Vec::new();
        };
        if let Some(why) = chat.no_images() {
            chat.editor.paste(pasted);
            self.flash(Role::Warning, why);
            return Vec::new();
        }
        let from = ImageFrom::File { path, pasted: pasted.to_owned() };
        vec![Effect::ReadImage(chat.link, from)]
    }

    /// What came of reading an image. Who has left the conversation meanwhile wants it no more.
    pub(in crate::app) fn image(
        &mut self,
        link: Link,
        from: &ImageFrom,
        image: Result<Image, Text>,
    ) {
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.is_on(link)) else { return };
        match image {
            Ok(Image { mime, data }) => {
                let attached = Attached::image(chat.editor.images() + 1, mime, data);
                chat.editor.paste(&format!("{} ", attached.mark()));
                chat.editor.attach(attached);
            }
            Err(why) => {
                if let ImageFrom::File { pasted, .. } = from {
                    chat.editor.paste(pasted);
                }
                self.flash(Role::Warning, why);
            }
        }
    }

    /// Reads the files of a prompt, or of a message into the turn, before it is sent.
    pub(super) fn read_files(&mut self, said: Said, is_steering: bool) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let effect = Effect::ReadAttached(PromptFiles {
            key: chat.key.clone(),
            files: said.files(),
            can: chat.can.unwrap_or_default(),
        });
        chat.reading = Some(Reading { said, is_steering });
        vec![effect]
    }

    /// Sends what the files were read for; or makes it a draft again, if one cannot be sent.
    pub(in crate::app) fn on_files_read(
        &mut self,
        of: &PromptFiles,
        read: Result<Vec<Value>, UnfitFile>,
    ) -> Vec<Effect> {
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.key == of.key) else {
            return Vec::new();
        };
        let is_wanted = |reading: &mut Reading| reading.said.files() == of.files;
        let Some(Reading { said, is_steering }) = chat.reading.take_if(is_wanted) else {
            return Vec::new();
        };
        match read {
            Ok(blocks) if is_steering => self.steer_into(&of.key, said.with_files(blocks)),
            Ok(blocks) => self.send_read(said.with_files(blocks)),
            Err(UnfitFile { why, hint }) => {
                chat.refused = Some(Refused::new(why, hint));
                self.not_sent(said);
                Vec::new()
            }
        }
    }

    /// Hands the prompt to the person's editor.
    pub(super) fn edit(&mut self) -> Vec<Effect> {
        let text = self.chat.as_ref().map(|chat| chat.editor.said().text);
        text.map(Effect::Edit).into_iter().collect()
    }

    /// What the person wrote in the editor.
    pub(in crate::app) fn edited(&mut self, edited: Result<String, Text>) {
        match (edited, &mut self.chat) {
            (Ok(text), Some(chat)) => chat.editor.rewrite(text),
            (Err(why), _) => self.flash(Role::Warning, why),
            (Ok(_), None) => {}
        }
    }
}
