//! Blocks as lines of a given width, as plain text and Markdown for other programs, and the search
//! in them. Other programs get the original text, not the escaped one.

use std::fmt::Write as _;

use acpd_api::{Untrusted, escape, json};
use anstream::adapter::strip_str;
use serde_json::Value;

use crate::about::commands;
use crate::block::{
    Block, Content, EXIT_CODES, Folding, Kind, Message, Plan, PlanEntry, Subagent, ToolCall,
    ToolContent,
};
use crate::diff::{Change, DiffLine, FileDiff};
use crate::lenient::NOT_READ;
use crate::markdown::Markdown;
use crate::summary::describe;
use crate::terminal::Terminal;
use crate::text::{BOLD, Role, Style, Text};
use crate::{human, text};

/// Members of `rawOutput` that can hold its text, the preferred first.
const RAW_TEXTS: &str =
    "formatted_output aggregated_output output stdout content text result message error";
/// Bytes shown of `rawOutput`, from its end.
const MAX_RAW_BYTES: usize = 64 << 10;
const INDENT: &str = "    ";
const UNBROKEN_WIDTH: usize = 4096;

impl Block {
    pub fn lines(&self, width: usize, folding: Folding) -> Vec<Text> {
        let has_head = !matches!(self.kind, Kind::Prompt(_) | Kind::Answer(_) | Kind::Thought(_));
        let head = has_head.then(|| self.summary());
        if folding == Folding::Closed {
            return vec![head.unwrap_or_else(|| self.summary()).cut(width)];
        }
        let mut body = self.body(width);
        if let Folding::First(most) | Folding::Last(most) = folding
            && body.len() > most
        {
            let hidden = body.len() - most;
            let from = if folding == Folding::First(most) { most } else { 0 };
            let mark = Text::of(Role::Dim, text!("{}… +{}", INDENT, hidden));
            body.splice(from..from + hidden, [mark]);
        }
        head.map(|head| head.wrap(width)).unwrap_or_default().into_iter().chain(body).collect()
    }

    fn body(&self, width: usize) -> Vec<Text> {
        match &self.kind {
            Kind::Prompt(message) => prompt(message, width),
            Kind::Answer(message) => said(message, |text| Markdown::whole(text, width)),
            Kind::Thought(message) => paragraph(&message.text(), Role::Dim, width, 0),
            Kind::Call(call) | Kind::Edit(call) => call.lines(width, false),
            Kind::Command(call) => call.lines(width, true),
            Kind::Plan(plan) => plan.body(width),
            Kind::Subagent(subagent) => subagent.body(width),
            Kind::Question(_) | Kind::Notice(_) | Kind::Gap(_) | Kind::Turn(_) => Vec::new(),
        }
    }

    /// Returns the block unfolded, as a screen shows it, but without line breaks.
    pub fn plain(&self) -> String {
        let lines = self.lines(UNBROKEN_WIDTH, Folding::Open);
        lines.iter().map(|line| line.to_string() + "\n").collect()
    }

    pub fn markdown(&self) -> String {
        match &self.kind {
            Kind::Prompt(message) | Kind::Thought(message) => quote(message),
            Kind::Answer(message) => message.text().into_raw(),
            Kind::Command(call) => command(self, call),
            Kind::Edit(call) => {
                let files = call.diffs();
                if files.is_empty() {
                    return fenced("", &self.plain());
                }
                let diff = |file: &FileDiff| fenced("diff", &file.unified(&call.short(&file.path)));
                files.iter().map(diff).collect::<Vec<_>>().join("\n")
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
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => {
                ["rawInput", "content"]
                    .iter()
                    .any(|name| call.members.get(*name).is_some_and(|value| any(value, &has)))
                    || call.terminals.iter().filter_map(Terminal::text).any(|text| has(text.raw()))
            }
            Kind::Subagent(subagent) => subagent.blocks.iter().any(|block| block.says(words)),
            _ => false,
        };
        inside || has(self.summary().as_str())
    }
}

fn prompt(message: &Message, width: usize) -> Vec<Text> {
    let lines = said(message, |text| paragraph(text, Role::User, width, 2)).into_iter().enumerate();
    let mark = |at| Text::of(Role::Mark, if at == 0 { "> " } else { "  " });
    lines.map(|(at, line)| mark(at) + line).collect()
}

fn said(message: &Message, text: impl Fn(&Untrusted) -> Vec<Text>) -> Vec<Text> {
    let lines = message.content.iter().flat_map(|part| match part {
        Content::Text(said) => text(said),
        Content::Other(block) => vec![Text::of(Role::Dim, describe(block))],
    });
    lines.collect()
}

/// Wraps prose, with `taken` columns of each line reserved.
fn paragraph(text: &Untrusted, role: Role, width: usize, taken: usize) -> Vec<Text> {
    let room = width.saturating_sub(taken).max(1);
    let lines = text.raw().trim().lines().map(|line| Text::of(role, escape::prose(line)));
    lines.flat_map(|line| line.wrap(room)).collect()
}

#[derive(Debug)]
pub struct CallBody {
    /// Empty if the summary has the command.
    pub commands: Vec<Text>,
    pub files: Vec<(Text, Change)>,
    pub output: Vec<Text>,
}

impl ToolCall {
    pub fn body(&self, is_command: bool) -> CallBody {
        // The summary has a command of one line.
        let title = self.title().filter(|_| !is_command);
        let commands = self.raw_input().map(|input| commands(input, title.as_ref()));
        let commands = commands.filter(|lines| !is_command || lines.len() > 1);
        let files = self.diffs().into_iter().map(|file| {
            let path = self.short(&file.path);
            let change = Change::of(&path, &file);
            (path.into(), change)
        });
        CallBody {
            commands: commands.unwrap_or_default(),
            files: files.collect(),
            output: self.output(),
        }
    }

    fn lines(&self, width: usize, is_command: bool) -> Vec<Text> {
        let CallBody { commands, files, output } = self.body(is_command);
        let mut lines: Vec<Text> = commands.iter().map(|line| Text::of(Role::Code, line)).collect();
        // The summary has the path of a single file.
        let has_heads = files.len() > 1 || files.iter().any(|(_, change)| change.has_old_path);
        for (_, change) in files {
            lines.extend(has_heads.then_some(change.head));
            lines.extend(change.lines.iter().map(DiffLine::line));
        }
        lines.extend(output);
        lines.into_iter().flat_map(|line| indented(&line, width)).collect()
    }

    /// Returns the non-blank lines of the tool's text content, or of `rawOutput` if there is none.
    pub fn output(&self) -> Vec<Text> {
        let content = self.content();
        let texts = content.iter().filter_map(|item| match item {
            ToolContent::Text(Some(text)) => Some(text.raw()),
            ToolContent::Text(None) => Some(NOT_READ),
            _ => None,
        });
        let raw = self.members.get("rawOutput").filter(|_| content.is_empty()).and_then(raw_text);
        let texts = texts.chain(raw.as_deref());
        let is_text = |line: &&str| !line.trim().is_empty();
        let lines = texts.map(unfenced).flat_map(str::lines).filter(is_text).map(|line| {
            // The colours of a command's output are dropped.
            let line = strip_str(line.trim_end()).to_string();
            Text::of(Role::Dim, escape::verbatim(&line))
        });
        lines.collect()
    }
}

/// Returns the text member of `rawOutput`, or all of it as JSON.
fn raw_text(output: &Value) -> Option<String> {
    let text = match output {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(|item| item["text"].as_str()).collect();
            if texts.len() == items.len() { texts.join("\n") } else { json::pretty(output).ok()? }
        }
        Value::Object(members) => {
            let texts = RAW_TEXTS.split(' ').filter_map(|name| members.get(name));
            match texts.into_iter().find_map(raw_text) {
                Some(text) => text,
                None if members.keys().all(|name| EXIT_CODES.contains(&name.as_str())) => {
                    return None;
                }
                None => json::pretty(output).ok()?,
            }
        }
        other => other.to_string(),
    };
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_RAW_BYTES));
    (!text.trim().is_empty()).then(|| text[start..].to_owned())
}

/// Indents a line of code. It breaks at the edge, not between words, because white space matters.
fn indented(line: &Text, width: usize) -> Vec<Text> {
    let rows = line.split(width.saturating_sub(INDENT.len()).max(1));
    let rows = rows.into_iter().map(|row| Text::of(Role::Plain, INDENT) + row);
    rows.collect()
}

impl Plan {
    fn body(&self, width: usize) -> Vec<Text> {
        let room = width.saturating_sub(INDENT.len()).max(1);
        let steps = self.entries.iter().flat_map(|entry| {
            let rows = entry.line().wrap(room).into_iter().enumerate();
            rows.map(|(at, row)| Text::of(Role::Plain, if at == 0 { "  " } else { INDENT }) + row)
        });
        let text = self.text.iter().flat_map(|text| Markdown::whole(text, width));
        steps.chain(text).collect()
    }
}

impl PlanEntry {
    pub fn line(&self) -> Text {
        let (sign, sign_style, style) = match self.status.raw() {
            "completed" => ("✓", Style::of(Role::Good), Style::of(Role::Dim)),
            "in_progress" => ("▸", Style::of(Role::Name), BOLD),
            _ => ("○", Style::default(), Style::default()),
        };
        let line = Text::of(sign_style, sign).and(Role::Plain, " ").and(style, &self.content);
        // Most agents give every step medium priority, so only other priorities are shown.
        match self.priority.raw() {
            "" | "medium" => line,
            _ => line.and(Role::Dim, text!(" ({})", self.priority)),
        }
    }
}

impl Subagent {
    fn body(&self, width: usize) -> Vec<Text> {
        let room = width.saturating_sub(INDENT.len()).max(1);
        let inner = self.blocks.iter().flat_map(|block| block.lines(room, block.folding));
        let lines = inner.map(|line| Text::of(Role::Mark, "  │ ") + line);
        lines.collect()
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
        ToolContent::Text(text) => text.as_ref().map(Untrusted::raw),
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
