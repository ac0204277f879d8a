//! Prompts that wait, as people see them.

use acpd_api::{QueuedPrompt, Untrusted};

use crate::text::{Text, text};

/// Returns a prompt on one line: `fix the tests [+ resource_link]`.
pub(crate) fn summary(prompt: &QueuedPrompt) -> Text {
    let (words, others) = prompt.parts();
    let words: Vec<&str> = words.split_whitespace().collect();
    let others: Text = others
        .iter()
        .filter_map(|block| block["type"].as_str())
        .map(|kind| text!(" [+ {}]", Untrusted::from(kind)))
        .collect();
    text!("{}{}", Untrusted::from(words.join(" ")), others)
}
