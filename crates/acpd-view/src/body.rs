//! Blocks as lines of a given width.

use acpd_api::{Untrusted, escape, json};
use anstream::adapter::strip_str;
use serde_json::Value;

use crate::about::commands;
use crate::block::{
    Block, Content, EXIT_CODES, Folding, Kind, Message, Plan, PlanEntry, Subagent, ToolCall,
    ToolContent,
};
use crate::copy::unfenced;
use crate::diff::{Change, DiffLine};
use crate::lenient::NOT_READ;
use crate::markdown::Markdown;
use crate::summary::describe;
use crate::text;
use crate::text::{BOLD, Role, Style, Text};

/// Members of `rawOutput` that can hold its text, the preferred first.
const RAW_TEXTS: [&str; 9] = [
    "formatted_output",
    "aggregated_output",
    "output",
    "stdout",
    "content",
    "text",
    "result",
    "message",
    "error",
];
/// Bytes shown of `rawOutput`, from its end.
const MAX_RAW_BYTES: usize = 64 << 10;
const INDENT: &str = "    ";

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
        let has_heads = files.len() > 1;
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
            ToolContent::Content { content: Some(content) } => {
                content.text.as_ref().map(Untrusted::raw)
            }
            ToolContent::Content { content: None } => Some(NOT_READ),
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
            let texts = RAW_TEXTS.iter().filter_map(|name| members.get(*name));
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
