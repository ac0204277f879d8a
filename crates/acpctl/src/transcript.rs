//! Transcripts of sessions: the journal is read page by page, and its turns become Markdown
//! ([`Markdown`]).

use std::collections::VecDeque;

use acpd_api::{LogParams, LogResult, SessionInfo, Untrusted};
use acpd_client::Connection;
use acpd_view::about::commands;
use acpd_view::{
    Block, Content, FileDiff, Kind, Message, Plan, State, ToolCall, Turn, describe, fenced_in,
    turn_end,
};

use crate::error::Result;
use crate::human;
use crate::render::{name, output};
use crate::text::{Text, text};

/// The transcript of a session or its end, for an agent that continues it.
#[derive(Debug)]
pub(crate) struct Transcript {
    head: String,
    turns: VecDeque<String>,
    size: usize,
    end: String,
    pub(crate) left_out: usize,
    /// The first turn lacks its beginning.
    pub(crate) is_cut: bool,
}

impl Transcript {
    /// Reads the last turns that fit into `room` bytes; only these are in memory.
    pub(crate) fn read(
        info: &SessionInfo,
        room: usize,
        connection: &mut Connection,
    ) -> Result<Transcript> {
        let head = head(info).as_str().to_owned();
        let (turns, end) = (VecDeque::new(), String::new());
        let mut all = Transcript { head, turns, size: 0, end, left_out: 0, is_cut: false };
        let mut markdown = Markdown::new(&info.agent);
        read(info, 0, connection, |turn| {
            // There are no messages before the first turn.
            if turn.started.is_some() {
                // The next text gets a heading.
                markdown.last = None;
                all.add(raw(markdown.turn(&turn)), room);
            }
            Ok(())
        })?;
        all.end = raw(markdown.end());
        Ok(all)
    }

    fn add(&mut self, text: String, room: usize) {
        self.size += text.len();
        self.turns.push_back(text);
        while self.size > room && self.turns.len() > 1 {
            self.size -= self.turns.pop_front().map_or(0, |turn| turn.len());
            self.left_out += 1;
            self.is_cut = false;
        }
        if self.size > room
            && let Some(turn) = self.turns.front_mut()
        {
            let start = turn.ceil_char_boundary(turn.len() - room);
            turn.drain(..start);
            self.size = turn.len();
            self.is_cut = true;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.turns.len()
    }

    pub(crate) fn text(&self) -> String {
        let cut = if self.is_cut { "\n[…]\n\n" } else { "" };
        let turns: String = self.turns.iter().map(String::as_str).collect();
        format!("{}{cut}{turns}{}", self.head, self.end)
    }
}

fn raw(parts: impl IntoIterator<Item = Part>) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(match &part {
            Part::Ours(text) => text.as_str(),
            Part::Theirs(text) => text.raw(),
        });
    }
    text
}

/// Reads a journal after a line, page by page: only one page and an unfinished turn are in memory.
pub(crate) fn read(
    info: &SessionInfo,
    after: u64,
    connection: &mut Connection,
    mut take: impl FnMut(Turn) -> Result,
) -> Result {
    let mut state = State::new(&info.session_id);
    let asked = LogParams::after(info.exactly(), after).with_originals();
    connection.read_log(asked, |page: LogResult| {
        for entry in page.entries {
            state.fold_entry(entry.seq, entry.line.get());
        }
        state.drain().into_iter().try_for_each(&mut take)
    })?;
    state.into_turns().into_iter().try_for_each(take)
}

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
        Some("cancelled") => "cancelled",
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
    let changes = file.unified(&file.path);
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
