//! Additions to a prompt: files, and text from the user's editor.

use std::path::Path;

use acpd_view::Role;
use acpd_view::text::Text;
use serde_json::Value;

use super::Reading;
use crate::app::prompt_draft::{Attached, PromptDraft};
use crate::app::{AppState, Effect, PromptFiles, Refused};

impl AppState {
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
