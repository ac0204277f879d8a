//! What acpd reads of a prompt.

use acp_wire::acp::PromptParams;
use acp_wire::{Message, locate, lossy_at, remove_member};
use acpd_api::{NAMESPACE, PromptMeta};
use acpd_policy::Verdict;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::params::own_meta;

/// Characters of an idempotency key.
const LONGEST_KEY: usize = 255;

/// Whether a prompt is acpd's own.
pub(crate) fn continues(prompt: &[u8]) -> bool {
    let path = ["params", "_meta", NAMESPACE, "continues"];
    locate(prompt, &path).is_some_and(|range| &prompt[range] == b"true")
}

/// The text of a prompt: its text blocks, as an agent would replay or echo them.
pub(crate) fn prompt_text(line: &[u8]) -> String {
    let Ok(Message::Request { params: Some(params), .. }) = acp_wire::parse(line) else {
        return String::new();
    };
    let Ok(params) = PromptParams::from_raw(params) else { return String::new() };
    blocks_text(&params.blocks)
}

/// The text of content blocks.
pub(crate) fn blocks_text(blocks: &[&RawValue]) -> String {
    let texts = blocks.iter().filter_map(|block| {
        lossy_at(block.get().as_bytes(), &["text"]).map(std::borrow::Cow::into_owned)
    });
    texts.collect()
}

/// The answer that the sender of a prompt gave beforehand to all questions of its turn.
pub(crate) fn once(prompt: &[u8]) -> Option<Verdict> {
    match meta(prompt)?.permissions?.as_str() {
        "allow" => Some(Verdict::Allow),
        "reject" => Some(Verdict::Reject),
        _ => None,
    }
}

/// Returns whether the sender of a prompt allowed beforehand what its turn asks for.
pub(crate) fn has_yes(prompt: &[u8]) -> bool {
    once(prompt) == Some(Verdict::Allow)
}

/// A prompt without the answer that its sender gave beforehand.
pub(crate) fn without_once(prompt: &Bytes) -> Bytes {
    remove_member(prompt, &["params", "_meta", NAMESPACE, "permissions"])
}

/// The ticket of the prompt in whose place this one is to wait.
pub(crate) fn in_place_of(prompt: &[u8]) -> Option<u64> {
    meta(prompt)?.in_place_of
}

/// The sender's idempotency key.
///
/// # Errors
/// When there is one and it is no string of 1 to [`LONGEST_KEY`] characters.
pub(crate) fn idempotency_key(prompt: &[u8]) -> Result<Option<String>, Fault> {
    let Some(at) = locate(prompt, &["params", "_meta", NAMESPACE, "idempotencyKey"]) else {
        return Ok(None);
    };
    let key: Option<Option<String>> = serde_json::from_slice(&prompt[at]).ok();
    match key {
        Some(None) => Ok(None),
        Some(Some(key)) if (1..=LONGEST_KEY).contains(&key.chars().count()) => Ok(Some(key)),
        _ => Err(Fault::invalid(format!(
            "`idempotencyKey` is no string of 1 to {LONGEST_KEY} characters"
        ))),
    }
}

fn meta(prompt: &[u8]) -> Option<PromptMeta> {
    let meta = locate(prompt, &["params", "_meta"])?;
    let meta = std::str::from_utf8(&prompt[meta]).ok()?;
    own_meta(meta).ok()?
}
