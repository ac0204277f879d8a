//! Messages: version 1 only adds to them, version 2 may replace one.

use std::hash::{DefaultHasher, Hasher as _};

use bytes::Bytes;
use hashlink::LinkedHashMap;
use serde_json::json;

use super::recent;
use crate::dialect::objects::{items_at, value_at};
use crate::{locate, lossy_at};

/// Messages of one session that are remembered.
const MOST: usize = 256;

/// The messages of a session, by kind and id: a thought and the answer behind it may share one id.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    shown: LinkedHashMap<String, Shown>,
}

/// The part of a message that is shown.
#[derive(Debug, Clone, Default)]
struct Shown {
    bytes: usize,
    hash: DefaultHasher,
    /// The agent has taken it back since.
    is_cleared: bool,
}

impl Shown {
    fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.hash.write(text);
    }
}

/// The content blocks that a message has now; none if it is cleared. `None`: those of before.
pub(super) fn blocks(update: &Bytes) -> Option<Vec<Bytes>> {
    locate(update, &["content"])?;
    Some(items_at(update, &["content"]).unwrap_or_default())
}

impl Messages {
    /// Returns a block to show before the chunk, if the message was cleared.
    pub(super) fn chunk(&mut self, kind: &str, id: &str, update: &Bytes) -> Option<Bytes> {
        let kind = kind.strip_suffix("_chunk").unwrap_or(kind);
        let block = value_at(update, &["content"])?;
        let shown = self.of(kind, id);
        let gap = shown.is_cleared.then(gap);
        if shown.is_cleared {
            *shown = Shown::default();
        }
        shown.add(&shown_by(&block));
        gap
    }

    /// Returns the blocks to show for a message that has these blocks now: those that continue what
    /// was shown, or else all of them behind an empty line.
    pub(super) fn replaced(&mut self, kind: &str, id: &str, blocks: Vec<Bytes>) -> Vec<Bytes> {
        let shown = self.of(kind, id);
        if blocks.is_empty() {
            // The old text stays shown.
            shown.is_cleared = shown.bytes > 0;
            return blocks;
        }
        let (mut all, mut known, mut rest) = (Shown::default(), Shown::default(), Vec::new());
        for block in blocks.iter().cloned() {
            let text = shown_by(&block);
            let (before, more) = text.split_at((shown.bytes - known.bytes).min(text.len()));
            all.add(&text);
            known.add(before);
            if before.is_empty() {
                rest.push(block);
            } else if !more.is_empty() {
                rest.push(text_block(&String::from_utf8_lossy(more)));
            }
        }
        let goes_on = known.bytes == shown.bytes && known.hash.finish() == shown.hash.finish();
        *shown = all;
        if goes_on { rest } else { [gap()].into_iter().chain(blocks).collect() }
    }

    fn of(&mut self, kind: &str, id: &str) -> &mut Shown {
        recent(&mut self.shown, &format!("{kind} {id}"), MOST)
    }
}

/// The text of a block; of others than text, the block itself.
fn shown_by(block: &Bytes) -> Bytes {
    lossy_at(block, &["text"]).map_or_else(|| block.clone(), |text| text.into_owned().into())
}

fn gap() -> Bytes {
    text_block("\n\n")
}

fn text_block(text: &str) -> Bytes {
    json!({ "type": "text", "text": text }).to_string().into()
}
