//! Prompts with attachments.

use std::rc::Rc;

use acp_wire::acp::{ContentBlock, file_uri};
use acpd_api::{QueuedPrompt, SessionRowKey, Untrusted};
use acpd_view::text::Text;
use serde_json::{Value, json};

use crate::app::PromptFile;

const SUMMARY_WIDTH: usize = 120;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PromptDraft {
    pub(super) text: String,
    /// All attachments; [`PromptDraft::attached`] returns those with a mark in the text.
    pub(super) all: Vec<Attached>,
    /// The ticket of the queued prompt that the draft replaces.
    pub(super) in_place_of: Option<u64>,
}

/// A text for a session. It becomes the draft again if it is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SessionDraft {
    pub(super) key: SessionRowKey,
    pub(super) said: PromptDraft,
}

/// An attachment. It is sent if its mark is in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attached {
    mark: String,
    /// Read when the prompt is sent.
    file: Option<PromptFile>,
    /// Shared, because a file can have many megabytes.
    block: Rc<Value>,
}

impl Attached {
    /// Attaches a file in `cwd`. Its mark is `@` and the relative path.
    pub(super) fn file(cwd: &str, path: &str) -> Attached {
        Attached::named(format!("{}/{path}", cwd.trim_end_matches('/')), path)
    }

    /// Attaches any file. Its mark is `@` and the absolute path.
    pub(super) fn elsewhere(path: &str) -> Attached {
        Attached::named(path.to_owned(), path)
    }

    fn named(path: String, name: &str) -> Attached {
        let (uri, mark) = (file_uri(&path), format!("@{name}"));
        let link =
            ContentBlock::ResourceLink { uri, name: name.to_owned(), mime_type: None, size: None };
        let file = PromptFile { path, name: name.to_owned() };
        Attached { mark, file: Some(file), block: Rc::new(json!(link)) }
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }
}

impl From<&str> for PromptDraft {
    fn from(text: &str) -> PromptDraft {
        PromptDraft { text: text.to_owned(), ..PromptDraft::default() }
    }
}

impl PromptDraft {
    /// Reads a queued prompt, which the draft replaces. Attachments of other programs may have no
    /// mark; they stay with any later text.
    pub(super) fn read(prompt: &QueuedPrompt) -> PromptDraft {
        let (text, others) = prompt.parts();
        let all = others.into_iter().map(|block| {
            let mark = block["name"].as_str().map(|name| format!("@{name}"));
            let mark = mark.filter(|mark| text.contains(mark)).unwrap_or_default();
            Attached { mark, file: None, block: Rc::new(block) }
        });
        let all = all.collect();
        PromptDraft { text, all, in_place_of: Some(prompt.ticket) }
    }

    pub(super) fn followed_by(mut self, more: PromptDraft) -> PromptDraft {
        self.text = [self.text, more.text].join("\n");
        self.all.extend(more.all);
        self
    }

    pub(super) fn summary(&self) -> Text {
        Text::from(&Untrusted::from(self.text.trim())).cut(SUMMARY_WIDTH)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.attached().next().is_none()
    }

    pub(super) fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.all.iter().filter(|attached| self.text.contains(&attached.mark))
    }

    pub(super) fn files(&self) -> Vec<PromptFile> {
        self.attached().filter_map(|attached| attached.file.clone()).collect()
    }

    /// Replaces links by content, in the order of [`PromptDraft::files`].
    pub(super) fn with_files(mut self, blocks: Vec<Value>) -> PromptDraft {
        let text = &self.text;
        let files = self.all.iter_mut();
        let files = files.filter(|file| file.file.is_some() && text.contains(&file.mark));
        for (file, block) in files.zip(blocks) {
            file.block = Rc::new(block);
        }
        self
    }

    pub(super) fn blocks(&self) -> Vec<Value> {
        let words = json!(ContentBlock::Text { text: self.text.clone() });
        let words = Some(words).filter(|_| !self.text.trim().is_empty());
        words
            .into_iter()
            .chain(self.attached().map(|attached| Value::clone(&attached.block)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attached_goes_with_its_mark() {
        let all = vec![Attached::file("/w/", "src/a b.rs"), Attached::elsewhere("/p/logo.png")];
        let text = "see @src/a b.rs and @/p/logo.png".to_owned();
        let mut said = PromptDraft { text, all, in_place_of: None };
        let blocks = said.blocks();
        assert_eq!(blocks[0], json!({"type": "text", "text": said.text}));
        let link = json!({"type": "resource_link", "uri": "file:///w/src/a%20b.rs",
            "name": "src/a b.rs"});
        assert_eq!(blocks[1], link);
        let link = json!({"type": "resource_link", "uri": "file:///p/logo.png",
            "name": "/p/logo.png"});
        assert_eq!(blocks[2], link);
        said.text = "see @/p/logo.png".into();
        assert_eq!(said.blocks().len(), 2, "the file is no longer named");
    }

    #[test]
    fn a_prompt_that_waits_is_read_as_it_was_written() {
        let all = vec![Attached::file("/w", "a.rs"), Attached::elsewhere("/p/logo.png")];
        let said = PromptDraft { text: "see @a.rs, @/p/logo.png".into(), all, in_place_of: None };
        let waits = |blocks: &Value| {
            let prompt = serde_json::value::to_raw_value(blocks).unwrap();
            QueuedPrompt { ticket: 1, place: 1, at: 0, prompt }
        };
        let read = PromptDraft::read(&waits(&json!(said.blocks())));
        assert_eq!((&read.text, read.blocks()), (&said.text, said.blocks()));
        assert!(read.attached().map(Attached::mark).eq(said.attached().map(Attached::mark)));
        let other = json!([{"type": "text", "text": "x"}, {"type": "resource", "resource": {}}]);
        assert_eq!(PromptDraft::read(&waits(&other)).blocks().len(), 2, "what is not ours stays");
    }
}
