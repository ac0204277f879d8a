//! Messages: version 1 only adds to them, version 2 may replace one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use bytes::Bytes;
use serde_json::json;

use crate::dialect::objects::{items_at, value_at};
use crate::lossy_at;

/// Messages of one session that are remembered.
const MOST: usize = 256;

/// What the messages of a session have shown, by kind and id: a thought and the answer behind it may
/// share one id.
#[derive(Debug, Default)]
pub(super) struct Messages {
    shown: BTreeMap<(String, String), Shown>,
}

#[derive(Debug, Default, Clone)]
struct Shown {
    bytes: usize,
    hash: DefaultHasher,
}

impl Shown {
    fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.hash.write(text);
    }
}

/// The content blocks of a message; none if it is cleared.
pub(super) fn blocks(update: &Bytes) -> Vec<Bytes> {
    items_at(update, &["content"]).unwrap_or_default()
}

impl Messages {
    pub(super) fn chunk(&mut self, kind: &str, id: &str, update: &Bytes) {
        let kind = kind.strip_suffix("_chunk").unwrap_or(kind);
        if let Some(block) = value_at(update, &["content"]) {
            self.of(kind, id).add(&shown_by(&block));
        }
    }

    /// Returns the blocks to show for a message that has these blocks now: those that continue what
    /// was shown, or else all of them behind an empty line.
    pub(super) fn replaced(&mut self, kind: &str, id: &str, blocks: Vec<Bytes>) -> Vec<Bytes> {
        let shown = self.of(kind, id);
        let (mut now, mut rest) = (Shown::default(), Vec::new());
        for block in blocks.iter().cloned() {
            let text = shown_by(&block);
            let known = (shown.bytes - now.bytes.min(shown.bytes)).min(text.len());
            now.add(&text[..known]);
            if known == 0 {
                rest.push(block);
            } else if let Some(more) = text.get(known..).filter(|more| !more.is_empty()) {
                rest.push(text_block(&String::from_utf8_lossy(more)));
            }
        }
        let goes_on = now.bytes == shown.bytes && now.hash.finish() == shown.hash.finish();
        // A cleared message stays shown.
        if !goes_on && !blocks.is_empty() {
            rest = [text_block("\n\n")].into_iter().chain(blocks).collect();
        }
        for block in &rest {
            shown.add(&shown_by(block));
        }
        rest
    }

    fn of(&mut self, kind: &str, id: &str) -> &mut Shown {
        if self.shown.len() > MOST {
            self.shown.clear();
        }
        self.shown.entry((kind.to_owned(), id.to_owned())).or_default()
    }
}

/// The text of a block; of others than text, the block itself.
fn shown_by(block: &Bytes) -> Bytes {
    lossy_at(block, &["text"]).map_or_else(|| block.clone(), |text| text.into_owned().into())
}

fn text_block(text: &str) -> Bytes {
    json!({ "type": "text", "text": text }).to_string().into()
}
