use acpd_api::{SessionInfo, Untrusted};
use acpd_view::about::commands;
use acpd_view::{
    Block, Content, FileDiff, Kind, Message, Plan, ToolCall, Turn, describe, fenced_in, turn_end,
};
use similar::TextDiff;

use crate::human;
use crate::render::{name, output};
use crate::text::{Text, text};

#[derive(Debug)]
pub(crate) enum Part {
    Ours(Text),
    Theirs(Untrusted),
}

impl<T: Into<Text>> From<T> for Part {
    fn from(text: T) -> Part {
        Part::Ours(text.into())
    }
}

pub(crate) fn head(session: &SessionInfo) -> Text {
    let title = session.title.as_ref().or(session.name.as_ref()).unwrap_or(&session.session_id);
    let name = match &session.name {
        Some(name) => text!("{} ({})", name, session.session_id),
        None => (&session.session_id).into(),
    };
    let usage = session.usage.as_ref().map(|usage| text!("- usage: {}\n", human::usage(usage)));
    text!(
        "# {}\n\n- session: {}\n- agent: {}\n- directory: {}\n- created: {}\n- used: {}\n{}",
        title,
        name,
        session.agent,
        session.cwd,
        human::clock(session.created),
        human::clock(session.updated),
        usage,
    )
}

/// Writes turns with a heading for each change of speaker, and the last plan at the end.
#[derive(Debug)]
pub(crate) struct Markdown {
    agent: Text,
    last: Option<Voice>,
    plan: Option<Plan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Agent,
}

impl Markdown {
    pub(crate) fn new(agent: &Untrusted) -> Markdown {
        Markdown { agent: agent.into(), last: None, plan: None }
    }

    pub(crate) fn turn(&mut self, turn: &Turn) -> Vec<Part> {
        turn.blocks.iter().flat_map(|block| self.block(block)).collect()
    }

    /// Forces a heading before the next text.
    pub(crate) fn restart(&mut self) {
        self.last = None;
    }

    pub(crate) fn end(&mut self) -> Option<Part> {
        self.plan.take().map(|last| plan(&last).into())
    }

    /// Returns nothing for a block that a transcript omits.
    pub(crate) fn block(&mut self, block: &Block) -> Vec<Part> {
        match &block.kind {
            Kind::Prompt(message) => self.said(Voice::User, said(message)),
            Kind::Answer(message) => self.said(Voice::Agent, said(message)),
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => {
                self.said(Voice::Agent, tool_call(call))
            }
            Kind::Plan(plan) => {
                self.plan = Some(plan.clone());
                Vec::new()
            }
            Kind::Turn(end) => turn_end(end).map(|line| quoted(&line)).into_iter().collect(),
            _ if block.source().is_some() => vec![quoted(&block.summary())],
            _ => Vec::new(),
        }
    }

    fn said(&mut self, voice: Voice, mut parts: Vec<Part>) -> Vec<Part> {
        if self.last.replace(voice) != Some(voice) {
            let heading = match voice {
                Voice::User => "\n## You\n".into(),
                Voice::Agent => text!("\n## {}\n", self.agent),
            };
            parts.insert(0, heading.into());
        }
        parts
    }
}

fn quoted(line: &Text) -> Part {
    text!("\n> {}\n", line).into()
}

fn said(message: &Message) -> Vec<Part> {
    let mut parts = Vec::new();
    for part in &message.content {
        match part {
            Content::Text(said) => {
                let said = Untrusted::from(fenced_in(said.raw().trim_end()));
                parts.extend(["\n".into(), Part::Theirs(said), "\n".into()]);
            }
            Content::Other(block) => {
                parts.push(text!("\n`{}`\n", describe(block)).into());
            }
        }
    }
    parts
}

fn tool_call(call: &ToolCall) -> Vec<Part> {
    let kind = Untrusted::from(call.kind().unwrap_or("other"));
    let status = match call.status() {
        Some("completed") => "done",
        Some("failed") => "failed",
        _ => "not finished",
    };
    let places = call.locations();
    let places =
        Text::join(places.iter().map(|location| text!("`{}`", call.place(location))), ", ");
    let places = if places.is_empty() { places } else { text!(": {}", places) };
    let mut parts = vec![text!("\n**{}** ({}, {}){}\n", name(call), kind, status, places).into()];
    let commands = call.raw_input().map(|input| commands(input, call.title().as_ref()));
    let commands = commands.unwrap_or_default();
    if !commands.is_empty() {
        let lines = Text::join(commands, "\n");
        let fence = fence(lines.as_str());
        parts.push(text!("\n{}sh\n{}\n{}\n", fence, lines, fence).into());
    }
    parts.extend(call.diffs().iter().flat_map(diff));
    let output = output(call);
    if !output.is_empty() {
        parts.push(text!("\n{}", output).into());
    }
    parts
}

fn diff(file: &FileDiff) -> [Part; 3] {
    let path = file.path.raw().replace(['\n', '\r'], " ");
    let old = file.old_text.as_ref().map(Untrusted::raw);
    let changes = TextDiff::from_lines(old.unwrap_or_default(), file.new_text.raw());
    let old_path = if old.is_some() { &path } else { "/dev/null" };
    let changes = changes.unified_diff().header(old_path, &path).to_string();
    let fence = fence(&changes);
    let end = if changes.is_empty() || changes.ends_with('\n') { "" } else { "\n" };
    [
        text!("\n{}diff\n", fence).into(),
        Part::Theirs(changes.into()),
        text!("{}{}\n", end, fence).into(),
    ]
}

/// Returns a fence that the text does not contain.
fn fence(text: &str) -> Text {
    Text::repeated("`", human::fence(text))
}

fn plan(plan: &Plan) -> Text {
    if plan.entries.is_empty() {
        return Text::new();
    }
    let mut text = Text::from("\n## Plan\n\n");
    for entry in &plan.entries {
        let (mark, more) = match entry.status.raw() {
            "completed" => ("x", ""),
            "in_progress" => (" ", ", in progress"),
            _ => (" ", ""),
        };
        let priority =
            if entry.priority.is_empty() { "medium".into() } else { Text::from(&entry.priority) };
        text += text!("- [{}] {} ({}{})\n", mark, entry.content, priority, more);
    }
    text
}
