use acp_wire::acp::PromptParams;
use acp_wire::{Message, locate, lossy_at, remove_member};
use acpd_api::{NAMESPACE, PromptMeta};
use acpd_policy::Verdict;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::params::{own_meta, raw_at};

/// Maximum length of an idempotency key in characters.
const LONGEST_KEY: usize = 255;

/// The mark of acpd's own prompts.
const CONTINUES: [&str; 4] = ["params", "_meta", NAMESPACE, "continues"];

/// Returns whether acpd wrote the prompt.
pub(crate) fn continues(prompt: &[u8]) -> bool {
    locate(prompt, &CONTINUES).is_some_and(|range| &prompt[range] == b"true")
}

/// Returns a client's prompt without the mark, which only acpd may set.
pub(crate) fn without_continues(prompt: Bytes) -> Bytes {
    if continues(&prompt) { remove_member(&prompt, &CONTINUES) } else { prompt }
}

/// Returns the text blocks of a prompt as an agent would replay or echo them.
pub(crate) fn prompt_text(line: &[u8]) -> String {
    let Ok(Message::Request { params: Some(params), .. }) = acp_wire::parse(line) else {
        return String::new();
    };
    let Ok(params) = PromptParams::from_raw(params) else { return String::new() };
    blocks_text(&params.blocks)
}

pub(crate) fn blocks_text(blocks: &[&RawValue]) -> String {
    let texts = blocks.iter().filter_map(|block| {
        lossy_at(block.get().as_bytes(), &["text"]).map(std::borrow::Cow::into_owned)
    });
    texts.collect()
}

/// Returns the sender's answer to all permission questions of the turn.
pub(crate) fn once(prompt: &[u8]) -> Option<Verdict> {
    match meta(prompt).permissions?.as_str() {
        "allow" => Some(Verdict::Allow),
        "reject" => Some(Verdict::Reject),
        _ => None,
    }
}

pub(crate) fn has_yes(prompt: &[u8]) -> bool {
    once(prompt) == Some(Verdict::Allow)
}

pub(crate) fn without_once(prompt: &Bytes) -> Bytes {
    remove_member(prompt, &["params", "_meta", NAMESPACE, "permissions"])
}

/// # Errors
/// When it is no string of 1 to [`LONGEST_KEY`] characters.
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

/// Returns the words of a prompt without the elements of clients around or before them, such as
/// `<previous_user_message>…</previous_user_message>`. If there is nothing else, returns the words
/// of the last element.
pub(crate) fn request_in(prompt: &str) -> &str {
    let mut rest = prompt.trim();
    while let Some((content, after)) = leading_element(rest) {
        let after = after.trim();
        rest = if after.is_empty() { content.trim() } else { after };
    }
    let ends = rest.match_indices("\n<").map(|(at, _)| at);
    let end = ends.into_iter().find(|at| leading_element(rest[*at..].trim_start()).is_some());
    rest[..end.unwrap_or(rest.len())].trim_end()
}

pub(crate) fn is_wrapped(text: &str) -> bool {
    wrapping_tag(text).is_some()
}

/// Returns the element's content and the rest.
fn leading_element(text: &str) -> Option<(&str, &str)> {
    let name = wrapping_tag(text)?;
    let (_, after) = text.split_once('>')?;
    after.split_once(&format!("</{name}>"))
}

/// HTML elements do not count, because the user may ask about them.
fn wrapping_tag(text: &str) -> Option<&str> {
    let tag = text.strip_prefix('<')?;
    let end = tag.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))?;
    let (name, after) = tag.split_at(end);
    let is_own = name.contains(['_', '-']) || name == "context";
    (is_own && name.starts_with(|c: char| c.is_ascii_alphabetic()) && after.starts_with(['>', ' ']))
        .then_some(name)
}

pub(crate) fn meta(prompt: &[u8]) -> PromptMeta {
    own_meta(raw_at(prompt, &["params", "_meta"])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::request_in;

    #[test]
    fn request_is_what_the_wrapping_leaves() {
        let table = [
            ("fix it", "fix it"),
            ("<previous_user_message>\nold\n</previous_user_message>\n\nfix it", "fix it"),
            ("<a_b>old</a_b><user_query>fix it</user_query>", "fix it"),
            ("<user_query><system-reminder>x</system-reminder>fix it</user_query>", "fix it"),
            ("<context id=\"1\">x</context>fix it", "fix it"),
            ("fix it\n<attached_files>\na\n</attached_files>", "fix it"),
            ("<div>x</div> is too wide", "<div>x</div> is too wide"),
            ("<open_only> is not closed", "<open_only> is not closed"),
            ("a <b_c>d</b_c> in the text", "a <b_c>d</b_c> in the text"),
            ("<a_b></a_b>", ""),
        ];
        for (prompt, request) in table {
            assert_eq!(request_in(prompt), request);
        }
    }
}
