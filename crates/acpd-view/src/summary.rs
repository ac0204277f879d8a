//! Blocks in one line, and rows: blocks, and groups of folded neighbours.

use acpd_api::{Outcome, TurnEnded, Untrusted};
use serde_json::Value;

use crate::about::commands;
use crate::block::{
    Block, Consent, Content, Delegation, Folding, Kind, Plan, PlanEntry, Progress, Question,
    Severity, Subagent, ToolCall,
};
use crate::diff::{Change, with_counts};
use crate::fold::cut_short;
use crate::header::ConfigOption;
use crate::lenient::NOT_READ;
use crate::text::{Role, Text};
use crate::{human, text};

impl Block {
    pub fn summary(&self) -> Text {
        match &self.kind {
            Kind::Prompt(message) => first_line("> ", Role::User, &message.content),
            Kind::Answer(message) => first_line("", Role::Plain, &message.content),
            Kind::Thought(_) if self.progress == Progress::Running => {
                Text::of(Role::Dim, "thinking")
            }
            Kind::Thought(_) => Text::of(Role::Dim, "thought"),
            Kind::Call(call) => self.how(Text::of(Role::Plain, title(call))),
            Kind::Edit(call) => self.how(edit(call, self.verb())),
            Kind::Command(call) => self.how(command(call)),
            Kind::Plan(Plan { text: Some(text), .. }) => {
                Text::of(Role::Plain, "plan").and(Role::Dim, text!(": {}", text))
            }
            Kind::Plan(steps) => Text::of(Role::Plain, plan(&steps.entries)),
            Kind::Question(Question { about, verdict, by, .. }) => {
                Text::of(Role::Dim, text!("{} by {}: {}", verdict, by, about))
            }
            Kind::Subagent(subagent) => subagent.summary(self.progress),
            Kind::Notice(notice) => {
                let role = match notice.severity {
                    Severity::Info => Role::Dim,
                    Severity::Warning => Role::Warning,
                    Severity::Error => Role::Bad,
                };
                Text::of(role, &notice.text)
            }
            Kind::Gap(gap) => {
                let (bytes, limit) = (human::bytes(gap.bytes), human::bytes(gap.limit));
                let text = text!("a line of {} was left out: the limit is {}", bytes, limit);
                Text::of(Role::Warning, text)
            }
            Kind::Turn(end) => turn(end),
        }
    }

    /// Appends the state of a call, unless the call runs or succeeded.
    fn how(&self, line: Text) -> Text {
        let (role, word) = match (self.progress, self.consent()) {
            (Progress::Running, Some(Consent::Asked)) => (Role::Warning, "waiting for you"),
            (Progress::Running, _) => return line,
            (_, Some(Consent::Refused)) => (Role::Warning, "denied"),
            (Progress::Failed, _) => (Role::Bad, "failed"),
            (Progress::Interrupted, _) => (Role::Warning, "not finished"),
            (Progress::Done, _) => return line,
        };
        line.and(Role::Plain, " · ").and(role, word)
    }

    /// Returns the verb for an edit; it claims nothing that has not happened.
    fn verb(&self) -> &'static str {
        match (self.progress, self.consent()) {
            (Progress::Running, Some(Consent::Asked)) => "wants to edit ",
            (Progress::Running, _) => "editing ",
            (Progress::Done, None) => "edited ",
            _ => "edit ",
        }
    }

    /// Returns whether the call failed; a refusal is not a failure.
    pub(crate) fn has_failed(&self) -> bool {
        self.progress == Progress::Failed && self.consent() != Some(Consent::Refused)
    }
}

/// Returns a call's title or kind; for a delegation, the agent and its session.
pub(crate) fn title(call: &ToolCall) -> Text {
    if let Some(Delegation { session_name, agent }) = call.delegation() {
        let agent = agent.map_or_else(|| "another agent".into(), Text::from);
        return text!("{} [{}]", agent, session_name);
    }
    match (call.title(), call.kind()) {
        (Some(title), _) => title.into(),
        (None, Some(kind)) => Untrusted::from(kind).into(),
        (None, None) => "a call that began before".into(),
    }
}

pub fn icon(kind: Option<&str>) -> &'static str {
    match kind {
        Some("read") => "◇",
        Some("edit") => "✎",
        Some("delete") => "−",
        Some("move") => "→",
        Some("search") => "?",
        Some("execute") => "$",
        Some("think") => "…",
        Some("fetch") => "↓",
        Some("switch_mode") => "⇄",
        _ => "•",
    }
}

fn first_line(mark: &'static str, role: Role, content: &[Content]) -> Text {
    let Some(first) = content.first() else { return Text::new() };
    let (line, mut more) = match first {
        Content::Text(text) => {
            let mut lines = text.raw().trim().lines();
            let first = Untrusted::from(lines.next().unwrap_or_default());
            (Text::from(first), lines.count())
        }
        Content::Other(block) => (describe(block), 0),
    };
    more += content.len() - 1;
    let line = Text::of(role, text!("{}{}", mark, line));
    if more > 0 { line.and(Role::Dim, text!("  +{}", more)) } else { line }
}

pub fn describe(block: &Value) -> Text {
    let text = |value: &Value| value.as_str().map(Untrusted::from);
    let other = || match text(&block["type"]) {
        Some(kind) if kind != "text" => text!("[{}: {}]", kind, NOT_READ),
        _ => text!("[{}]", NOT_READ),
    };
    let blob = |what: &'static str| {
        let size = block["data"].as_str().map_or(0, str::len) as u64 / 4 * 3;
        text!("[{} {} {}]", what, text(&block["mimeType"]), human::bytes(size))
    };
    match block["type"].as_str() {
        Some("image") => blob("image"),
        Some("audio") => blob("audio"),
        Some("resource_link") => match (text(&block["uri"]), text(&block["name"])) {
            (Some(uri), Some(name)) if name != uri => text!("[{}] {}", name, uri),
            (Some(it), _) | (None, Some(it)) => text!("[{}]", it),
            (None, None) => other(),
        },
        Some("resource") => match text(&block["resource"]["uri"]) {
            Some(uri) => text!("[{}]", uri),
            None => other(),
        },
        _ => other(),
    }
}

fn edit(call: &ToolCall, verb: &'static str) -> Text {
    let files = call.diffs();
    let (added, removed) = files.iter().fold((0, 0), |(added, removed), file| {
        let change = Change::of(&file.path, file);
        (added + change.added, removed + change.removed)
    });
    let paths = files.iter().map(|file| &file.path).collect::<std::collections::BTreeSet<_>>();
    let what = match paths.first() {
        Some(path) if paths.len() == 1 => call.short(path).into(),
        None => title(call),
        _ => text!("{} files", paths.len()),
    };
    with_counts(Text::of(Role::Plain, verb).and(Role::Name, what), added, removed)
}

fn command(call: &ToolCall) -> Text {
    let lines = call.raw_input().map(|input| commands(input, None)).unwrap_or_default();
    let mut line = Text::of(Role::Dim, "$ ");
    match lines.split_first() {
        Some((first, rest)) => {
            line = line.and(Role::Code, first);
            if !rest.is_empty() {
                line = line.and(Role::Dim, text!("  +{}", rest.len()));
            }
        }
        None => line = line.and(Role::Code, title(call)),
    }
    match call.exit_code() {
        Some(code) if code != 0 => line.and(Role::Bad, text!(" · exit {}", code)),
        _ => line,
    }
}

impl Plan {
    pub fn done(&self) -> usize {
        done(&self.entries)
    }
}

/// Describes a plan in one line: the number of finished steps, and the current or next step.
pub fn plan(steps: &[PlanEntry]) -> Text {
    let at = |status: &str| steps.iter().find(|step| step.status == status);
    let count = text!("plan {}/{}", done(steps), steps.len());
    match at("in_progress").or_else(|| at("pending")) {
        Some(step) => text!("{}: {}", count, step.content),
        None => count,
    }
}

fn done(steps: &[PlanEntry]) -> usize {
    steps.iter().filter(|step| step.status == "completed").count()
}

impl Subagent {
    fn failed(&self) -> usize {
        let failed = self.blocks.iter().map(|block| match &block.kind {
            Kind::Subagent(inner) => inner.failed(),
            _ => usize::from(block.has_failed()),
        });
        failed.sum()
    }

    fn summary(&self, progress: Progress) -> Text {
        let title = self.title.as_ref().map_or_else(|| "subagent".into(), Text::from);
        let state = match progress {
            Progress::Done => "done".into(),
            Progress::Failed => "failed".into(),
            Progress::Interrupted => "not finished".into(),
            Progress::Running => self.state.as_ref().map_or_else(
                || "running".into(),
                |state| Text::from(Untrusted::from(state.raw().replace('_', " "))),
            ),
        };
        let steps = self.blocks.iter().filter(|block| block.tool_call().is_some()).count();
        let line = Text::of(Role::Plain, text!("{}: {}", title, state));
        let line = match steps {
            0 => line,
            _ => line.and(Role::Dim, text!(", {}", human::counted(steps, "step"))),
        };
        match self.failed() {
            0 => line,
            failed => line.and(Role::Plain, ", ").and(Role::Bad, text!("{} failed", failed)),
        }
    }
}

/// Says how a turn ended; none if it ended normally.
pub fn turn_end(end: &TurnEnded) -> Option<Text> {
    let (role, text) = match &end.outcome {
        Outcome::Stopped { stop_reason } if *stop_reason == "end_turn" => return None,
        Outcome::Stopped { stop_reason } => {
            let reason = || Untrusted::from(stop_reason.raw().replace('_', " ")).into();
            let why: Text = end.cut_short.as_ref().map_or_else(reason, cut_short);
            (Role::Dim, text!("turn ended: {}", why))
        }
        Outcome::Error { message, .. } => (Role::Bad, text!("turn failed: {}", message)),
        Outcome::Interrupted { reason } => {
            let text = text!("turn interrupted: {}; the last message may be incomplete", reason);
            (Role::Warning, text)
        }
        Outcome::Unwedged { reason } => {
            (Role::Warning, text!("turn cancelled: {}; acpd restores the session", reason))
        }
        Outcome::OutcomeUnknown { reason } => (
            Role::Warning,
            text!(
                "outcome unknown: {}; acpd does not send the prompt again: check what was done",
                reason
            ),
        ),
    };
    Some(Text::of(role, text))
}

fn turn(end: &TurnEnded) -> Text {
    let mut line = turn_end(end).unwrap_or_else(|| Text::of(Role::Dim, "done"));
    if end.started_at > 0 {
        let took = human::duration(end.at.saturating_sub(end.started_at));
        line = line.and(Role::Dim, text!(" · {}", took));
    }
    match end.files.len() {
        0 => line,
        files => line.and(Role::Dim, text!(" · {}", human::counted(files, "file"))),
    }
}

impl ConfigOption {
    /// Returns name and value: `Model: Opus`.
    pub fn sentence(&self) -> Text {
        text!("{}: {}", self.name.as_ref().unwrap_or(&self.id), self.value_name())
    }
}

/// A block, or a group: adjacent folded calls, with the thoughts between them and the answers to
/// their questions. At least two of a group are calls.
pub type Row<'a> = &'a [Block];

/// Returns the rows of blocks; `folding` includes the user's choices.
pub fn rows(blocks: &[Block], folding: impl Fn(&Block) -> Folding) -> Vec<Row<'_>> {
    let joins = |block: &Block| {
        let is_kind = matches!(block.kind, Kind::Thought(_) | Kind::Question(_));
        (is_kind || block.tool_call().is_some()) && folding(block) == Folding::Closed
    };
    let mut rows = Vec::new();
    for part in blocks.chunk_by(|one, other| joins(one) && joins(other)) {
        let is_call = |block: &Block| block.tool_call().is_some() && joins(block);
        let first = part.iter().position(is_call);
        let is_thought = |block: &Block| matches!(block.kind, Kind::Thought(_));
        let last = part.iter().rposition(|block| !is_thought(block));
        let calls = part.iter().filter(|block| is_call(block)).count();
        match (first, last) {
            // Thoughts around a group stay visible, because they explain the next step.
            (Some(first), Some(last)) if calls > 1 => {
                rows.extend(part[..first].chunks(1));
                rows.push(&part[first..=last]);
                rows.extend(part[last + 1..].chunks(1));
            }
            _ => rows.extend(part.chunks(1)),
        }
    }
    rows
}

/// Summarizes a group in one line; failures are always shown.
pub fn group_summary(blocks: &[Block]) -> Text {
    let mut facts: Vec<(&Words, usize)> = Vec::new();
    let happened = blocks.iter().filter(|block| block.consent() != Some(Consent::Refused));
    for words in happened.filter_map(words) {
        match facts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => facts.push((words, 1)),
        }
    }
    let facts = facts.into_iter().map(|((_, verb, one, many), count)| match count {
        1 => text!("{} 1 {}", verb, one),
        _ => text!("{} {} {}", verb, count, many),
    });
    let line = Text::of(Role::Plain, Text::join(facts, ", "));
    let calls = || blocks.iter().filter(|block| block.tool_call().is_some());
    let is_cut = |block: &&Block| {
        block.progress == Progress::Interrupted && block.consent() != Some(Consent::Refused)
    };
    let is_refused =
        |block: &&Block| matches!(&block.kind, Kind::Question(question) if question.is_refused);
    let bad = [
        (calls().filter(|block| block.has_failed()).count(), Role::Bad, "failed"),
        (calls().filter(is_cut).count(), Role::Warning, "not finished"),
        (blocks.iter().filter(is_refused).count(), Role::Warning, "denied"),
    ];
    bad.into_iter().filter(|(count, ..)| *count > 0).fold(line, |line, (count, role, word)| {
        let gap = if line.is_empty() { "" } else { ", " };
        line.and(Role::Plain, gap).and(role, text!("{} {}", count, word))
    })
}

/// Kind, verb, singular noun, plural noun.
type Words = (&'static str, &'static str, &'static str, &'static str);
const WORDS: [Words; 8] = [
    ("read", "read", "file", "files"),
    ("edit", "edited", "file", "files"),
    ("delete", "deleted", "file", "files"),
    ("move", "moved", "file", "files"),
    ("search", "searched for", "phrase", "phrases"),
    ("execute", "ran", "command", "commands"),
    ("fetch", "fetched", "page", "pages"),
    ("other", "used", "tool", "tools"),
];

fn words(block: &Block) -> Option<&'static Words> {
    let kind = match &block.kind {
        Kind::Edit(_) => "edit",
        Kind::Command(_) => "execute",
        _ => block.tool_call()?.kind().unwrap_or_default(),
    };
    WORDS.iter().find(|(known, ..)| *known == kind).or(WORDS.last())
}
