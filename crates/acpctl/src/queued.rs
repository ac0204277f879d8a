//! Prompts that wait, as people see them.

use acpd_api::{QueuedPrompt, Untrusted};
use serde_json::Value;

use crate::text::{Text, text};

/// Its content blocks.
pub(crate) fn blocks(prompt: &QueuedPrompt) -> Vec<Value> {
    serde_json::from_str(prompt.prompt.get()).unwrap_or_default()
}

/// What it says, without what is with it.
pub(crate) fn said(prompt: &QueuedPrompt) -> String {
    let blocks = blocks(prompt);
    let said = blocks.iter().filter(|block| block["type"] == "text");
    let texts: Vec<&str> = said.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// What is said, and what else is with it: `fix the tests [+ resource_link]`.
pub(crate) fn summary(prompt: &QueuedPrompt) -> Text {
    let words = said(prompt);
    let words: Vec<&str> = words.split_whitespace().collect();
    let blocks = blocks(prompt);
    let others = blocks.iter().filter(|block| block["type"] != "text");
    let others: Text = others
        .filter_map(|block| block["type"].as_str())
        .map(|kind| text!(" [+ {}]", Untrusted::from(kind)))
        .collect();
    text!("{}{}", Untrusted::from(words.join(" ")), others)
}
