//! Blocks as plain text and Markdown for other programs, and the search in blocks. Other programs
//! get the original text, not the escaped one.

use std::fmt::Write as _;

use acpd_api::Untrusted;
use serde_json::Value;

use crate::block::{Block, Folding, Kind, Message, PlanEntry, ToolCall, ToolContent};
use crate::human;

const UNBROKEN_WIDTH: usize = 4096;

impl Block {
    /// Returns the block unfolded, as a screen shows it, but without line breaks.
    pub fn plain(&self) -> String {
        let lines = self.lines(UNBROKEN_WIDTH, Folding::Open);
        lines.iter().map(|line| line.to_string() + "\n").collect()
    }

    pub fn markdown(&self) -> String {
        match &self.kind {
            Kind::Prompt(message) => quote(message),
            Kind::Answer(message) => message.text().into_raw(),
            Kind::Thought(message) => quote(message),
            Kind::Command(call) => command(self, call),
            Kind::Edit(call) => {
                let files = call.diffs();
                let diffs = files.iter().map(|file| {
                    let old = file.old_text.as_ref().map_or("", Untrusted::raw);
                    let path = call.short(&file.path);
                    let diff = similar::TextDiff::from_lines(old, file.new_text.raw());
                    let diff = diff.unified_diff().header(path.raw(), path.raw()).to_string();
                    fenced("diff", &diff)
                });
                diffs.collect::<Vec<_>>().join("\n")
            }
            Kind::Plan(plan) if plan.text.is_none() => {
                let step = |step: &PlanEntry| {
                    let mark = if step.status == "completed" { 'x' } else { ' ' };
                    format!("- [{mark}] {}\n", step.content.raw())
                };
                plan.entries.iter().map(step).collect()
            }
            _ => fenced("", &self.plain()),
        }
    }

    /// Returns whether the unfolded block contains the words; `words` are in lower case.
    pub fn says(&self, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        let inside = match &self.kind {
            Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) => {
                has(message.text().raw())
            }
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => ["rawInput", "content"]
                .iter()
                .any(|name| call.members.get(*name).is_some_and(|value| any(value, &has))),
            Kind::Subagent(subagent) => subagent.blocks.iter().any(|block| block.says(words)),
            _ => false,
        };
        inside || has(self.summary().as_str())
    }
}

fn any(value: &Value, has: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| any(item, has)),
        Value::Object(members) => members.values().any(|value| any(value, has)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn quote(message: &Message) -> String {
    message.text().raw().trim_end().lines().fold(String::new(), |mut quote, line| {
        // Writing to a string does not fail.
        let _ = writeln!(quote, "{}", format!("> {line}").trim_end());
        quote
    })
}

fn command(block: &Block, call: &ToolCall) -> String {
    let head = block.summary().to_string();
    let content = call.content();
    let printed = content.iter().filter_map(|item| match item {
        ToolContent::Content { content } => content.as_ref()?.text.as_ref().map(Untrusted::raw),
        _ => None,
    });
    let lines = printed.map(unfenced).flat_map(str::lines);
    let printed: String = lines.flat_map(|line| [line, "\n"]).collect();
    fenced("console", &format!("{head}\n{printed}"))
}

/// Removes the code block that many agents put around printed text.
pub(crate) fn unfenced(text: &str) -> &str {
    let inner = || {
        let (first, rest) = text.trim_end().split_once('\n')?;
        let (inner, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
        let is_fence = last.len() >= 3 && last.bytes().all(|byte| byte == b'`');
        (is_fence && first.starts_with(last)).then_some(inner)
    };
    inner().unwrap_or(text)
}

/// Puts text into a code block, with a fence that the text does not contain.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(human::fence(text));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn block(update: &str) -> Block {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        );
        let mut state = State::new(&"s".into());
        state.fold_entry(1, &line);
        state.blocks().next().unwrap().clone()
    }

    #[test]
    fn blocks_are_copied_as_markdown() {
        let said = block(
            r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"one\n\ntwo"}}"#,
        );
        assert_eq!(said.markdown(), "> one\n>\n> two\n");
        let ran = block(
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"make","status":"completed",
            "rawInput":{"command":"make"},"content":[{"type":"content","content":{"type":"text","text":"a ``` b\nok"}}]}"#,
        );
        assert_eq!(ran.markdown(), "````console\n$ make\na ``` b\nok\n````\n");
        let edit = block(
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"x","content":
            [{"type":"diff","path":"/w/a.rs","oldText":"one\n","newText":"two\n"}]}"#,
        );
        assert_eq!(
            edit.markdown(),
            "```diff\n--- /w/a.rs\n+++ /w/a.rs\n@@ -1 +1 @@\n-one\n+two\n```\n"
        );
    }

    #[test]
    fn only_the_fence_around_what_was_printed_is_left_out() {
        let readme = "# Build\n```sh\nmake\n```\nThat is all.";
        for printed in [readme.to_owned(), format!("````\n{readme}\n````\n")] {
            let printed = serde_json::to_string(&printed).unwrap();
            let ran = block(&format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"cat","status":"completed",
                "rawInput":{{"command":"cat"}},"content":[{{"type":"content","content":{{"type":"text","text":{printed}}}}}]}}"#
            ));
            assert_eq!(ran.markdown(), format!("````console\n$ cat\n{readme}\n````\n"));
            assert!(ran.plain().contains("```sh") && !ran.plain().contains("````"));
        }
    }

    #[test]
    fn words_are_found_in_what_can_be_unfolded() {
        let ran = block(
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"make","status":"completed",
            "rawOutput":{"hidden":"never"},"content":[{"type":"content","content":{"type":"text","text":"All Fine"}}]}"#,
        );
        assert!(ran.says("all fine") && ran.says("make") && !ran.says("never"));
    }
}
