//! The part of a turn that the model gets, and its progress reports. Both are bounded, and text of
//! an agent cannot imitate anything else.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use acp_wire::clipped;
use acpd_api::{InteractionInfo, Outcome, Question, SessionInfo, TurnEnded, Untrusted};
use acpd_view::about::asked;
use acpd_view::{Block, Id, Kind, Progress, Severity, Turn, turn_end};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::ticket::Ticket;

/// Characters of an answer. Of a longer answer the end is kept, which has the conclusion.
const ANSWER: usize = 12_000;
/// Characters of a line of progress.
const LINE: usize = 400;
/// Bytes of a question that an agent may answer.
const QUESTION: usize = 32 << 10;
/// Bytes of all such questions of one report.
const QUESTIONS: usize = 64 << 10;
/// Entries of a list, and lines of one progress report.
const MOST: usize = 50;

/// The outcome of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) status: Status,
    /// Names the turn for `result`, `wait`, `cancel` and `steer`. As a resource it is the whole turn as Markdown, for
    /// people.
    pub(crate) ticket: String,
    /// The name of the session; a prompt by that name continues it.
    pub(crate) session_name: Option<String>,
    pub(crate) session_id: String,
    pub(crate) agent: String,
    /// Why the agent stopped: `end_turn`, `cancelled`, `refusal`, `interrupted`, …
    pub(crate) stop_reason: Option<String>,
    /// Notes that belong to the answer.
    pub(crate) notes: Vec<String>,
    /// The last thing that the agent said.
    pub(crate) answer: String,
    /// Only the end of the answer is here; all of it is in the resource.
    pub(crate) answer_truncated: bool,
    /// Files that it has changed.
    pub(crate) files: Vec<String>,
    pub(crate) plan: Vec<Value>,
    /// How many tool calls it made.
    pub(crate) tool_calls: Option<u32>,
    /// Tokens and cost of the turn, as far as the agent tells.
    pub(crate) usage: Option<Value>,
    /// Questions that wait for a person.
    pub(crate) questions: Vec<String>,
    /// Those of them that the caller may answer with `answer`; of the others, a person has to see more.
    pub(crate) to_answer: Vec<ToAnswer>,
}

/// How a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The turn runs, or waits to begin.
    Working,
    /// The turn waits for an answer, which a person gives (with `acpctl pending`, or in an editor), or you,
    /// if it is in `toAnswer`.
    WaitsForPerson,
    /// The agent has ended it by itself.
    Done,
    Cancelled,
    /// The turn failed, or the agent refused.
    Failed,
    /// The agent died or was stopped in the middle; what it did stays.
    Interrupted,
    /// Nothing is known about how far the turn came.
    Unknown,
}

/// A question, as it was asked: what is answered is this.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToAnswer {
    /// Names it for `answer`.
    pub(crate) question: String,
    pub(crate) asks: Value,
}

impl ToAnswer {
    /// Returns a question that an agent may answer. Not one that is too long to be read as a whole,
    /// nor one for which a person has to open something.
    pub(crate) fn of(open: &InteractionInfo) -> Option<ToAnswer> {
        let is_one = match &open.question {
            Question::Permission { shown, .. } => shown.as_ref()?.is_whole(),
            Question::Form { .. } => true,
            Question::Url { .. } => false,
        };
        let asks = safe(serde_json::to_value(&open.question).ok()?);
        let fits = asks.to_string().len() <= QUESTION;
        (is_one && fits).then(|| ToAnswer { question: line(&open.id), asks })
    }
}

impl Report {
    pub(crate) fn new(session: &SessionInfo, ticket: &Ticket, turn: Option<&Turn>) -> Report {
        let blocks = turn.map_or(&[][..], |turn| &turn.blocks);
        let mut answers = blocks.iter().filter_map(|block| match &block.kind {
            Kind::Answer(message) => Some(message.text()),
            _ => None,
        });
        let last = answers.rfind(|text| !text.raw().trim().is_empty());
        let (answer, answer_truncated) = tail(&last.unwrap_or_default(), ANSWER);
        let plan = blocks.iter().rev().find_map(|block| match &block.kind {
            Kind::Plan(plan) => Some(plan.entries.as_slice()),
            _ => None,
        });
        // The status is `pending`, `in_progress` or `completed`.
        let step = |entry: &acpd_view::PlanEntry| json!({"step": line(&entry.content), "status": line(&entry.status)});
        let end = blocks.iter().find_map(|block| match &block.kind {
            Kind::Turn(end) => Some(&**end),
            _ => None,
        });
        // Such as a lost conversation.
        let matters = |block: &&Block| matches!(&block.kind, Kind::Notice(notice) if notice.severity > Severity::Info);
        let notes = blocks.iter().filter(matters).map(|block| short(block.summary().as_str()));
        let mut notes: Vec<String> = notes.take(MOST).collect();
        let sentence = end.and_then(turn_end);
        notes.extend(sentence.map(|line| short(line.as_str())));
        Report {
            status: end.map_or(Status::Working, status),
            ticket: ticket.to_string(),
            session_name: session.name.as_ref().map(line),
            session_id: line(&session.session_id),
            agent: line(&session.agent),
            stop_reason: end.map(|end| line(&end.outcome.word().into())),
            notes,
            answer,
            answer_truncated,
            files: end
                .map(|end| end.files.iter().take(MOST).map(line).collect())
                .unwrap_or_default(),
            plan: plan.unwrap_or_default().iter().take(MOST).map(step).collect(),
            tool_calls: end.and_then(|end| end.tools),
            usage: end.and_then(usage),
            questions: Vec::new(),
            to_answer: Vec::new(),
        }
    }

    /// Adds the open questions, with those that the reader may answer.
    #[must_use]
    pub(crate) fn asking(self, open: &[InteractionInfo], answers: bool) -> Report {
        if open.is_empty() || self.status != Status::Working {
            return self;
        }
        let questions = open.iter().take(MOST);
        let questions = questions.map(|open| short(asked(&open.question).as_str())).collect();
        let mut room = QUESTIONS;
        // The others follow when these are answered.
        let fits = |asked: &ToAnswer| {
            let rest = room.checked_sub(asked.asks.to_string().len());
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        let to_answer = open.iter().filter(|_| answers).filter_map(ToAnswer::of);
        let to_answer = to_answer.filter(fits).take(MOST).collect();
        Report { status: Status::WaitsForPerson, questions, to_answer, ..self }
    }
}

impl IntoCallToolResult for Report {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        let mut result = CallToolResult::structured(row(json!(self)));
        // The turn did not go well.
        let is_error =
            matches!(self.status, Status::Failed | Status::Interrupted | Status::Unknown);
        result.is_error = Some(is_error);
        if self.status != Status::Working {
            let name = self.session_name.unwrap_or(self.session_id);
            let text = Resource::new(self.ticket, format!("the whole turn of {name}"))
                .with_mime_type("text/markdown");
            result.content.push(ContentBlock::resource_link(text));
        }
        Ok(result.into())
    }
}

fn status(end: &TurnEnded) -> Status {
    match &end.outcome {
        Outcome::Stopped { stop_reason } => match stop_reason.raw() {
            "cancelled" => Status::Cancelled,
            "refusal" => Status::Failed,
            _ => Status::Done,
        },
        Outcome::Error { .. } => Status::Failed,
        Outcome::Interrupted { .. } => Status::Interrupted,
        Outcome::Unwedged { .. } => Status::Cancelled,
        Outcome::OutcomeUnknown { .. } => Status::Unknown,
    }
}

/// Usage of the turn. The agent names the currency.
fn usage(end: &TurnEnded) -> Option<Value> {
    let mut used = end.usage.clone()?;
    if let Some(cost) = &mut used.cost {
        cost.currency = line(&cost.currency).into();
    }
    serde_json::to_value(used).ok()
}

/// Escapes all texts in a value, without cutting them.
fn safe(value: Value) -> Value {
    match value {
        Value::String(text) => Untrusted::from(text).prose().to_string().into(),
        Value::Array(items) => items.into_iter().map(safe).collect(),
        Value::Object(members) => {
            let safe_name = |name: String| Untrusted::from(name).prose().to_string();
            members.into_iter().map(|(name, value)| (safe_name(name), safe(value))).collect()
        }
        other => other,
    }
}

/// A text of an agent, on one line.
pub(crate) fn line(text: &Untrusted) -> String {
    short(&text.one_line().to_string())
}

/// The beginning of a safe text.
fn short(text: &str) -> String {
    clipped(text, LINE)
}

/// The last `most` characters, and whether the text was longer.
fn tail(text: &Untrusted, most: usize) -> (String, bool) {
    let text = text.prose().to_string();
    let left_out = text.chars().count().saturating_sub(most);
    match text.char_indices().nth(left_out).filter(|_| left_out > 0) {
        Some((at, _)) => (format!("…{}", &text[at..]), true),
        None => (text, false),
    }
}

/// An object without the members that are null, false or an empty list.
pub(crate) fn row(mut row: Value) -> Value {
    if let Value::Object(members) = &mut row {
        members.retain(|_, value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
    }
    row
}

/// Seconds since a time (ms since the epoch).
pub(crate) fn age(at: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| (now.as_millis() as u64).saturating_sub(at) / 1000)
}

/// Up to `most` characters of a block.
pub(crate) fn block_text(block: &Block, most: usize) -> String {
    let said = block.message().map(|message| message.text().prose().to_string());
    clipped(&said.unwrap_or_else(|| block.summary().to_string()), most)
}

/// Blocks as Markdown for people, up to `most` bytes.
pub(crate) fn transcript(blocks: &[Block], most: usize) -> String {
    let mut text = String::new();
    for block in blocks {
        let head = match &block.kind {
            Kind::Prompt(_) => "## Prompt\n\n",
            Kind::Answer(_) => "## Answer\n\n",
            Kind::Thought(_) => "### Thought\n\n",
            _ => "- ",
        };
        text.push_str(head);
        text.push_str(block_text(block, most).trim_end());
        text.push_str("\n\n");
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
            text.push_str("\n\n…\n");
            break;
        }
    }
    text
}

#[derive(Debug, Default)]
pub(crate) struct ReportedProgress {
    /// The last line of the journal.
    last: u64,
    /// Reported bytes of each answer.
    said: HashMap<Id, usize>,
    waits: bool,
}

impl ReportedProgress {
    /// Lines about the new parts of a turn.
    pub(crate) fn new_lines(&mut self, turn: &Turn, waits: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let known = self.last;
        for block in turn.blocks.iter().filter(|block| block.last > known) {
            self.last = self.last.max(block.last);
            lines.extend(self.line(block));
        }
        if waits && !self.waits {
            lines.push("waits for a person: `acpctl pending`".to_owned());
        }
        self.waits = waits;
        // Hosts show few lines: the newest count.
        let left_out = lines.len().saturating_sub(MOST);
        if left_out > 0 {
            lines.splice(..left_out, [format!("… {left_out} lines more")]);
        }
        lines
    }

    fn line(&mut self, block: &Block) -> Option<String> {
        match &block.kind {
            Kind::Answer(message) => {
                let text = message.text();
                let told = self.said.entry(block.id).or_default();
                let new = Untrusted::from(text.raw().get(*told..).unwrap_or_default());
                *told = text.raw().len();
                let (new, _) = tail(&new, LINE);
                (!new.trim().is_empty()).then_some(new)
            }
            // The follower itself has sent it.
            Kind::Prompt(_) => None,
            Kind::Thought(_) if block.progress == Progress::Running => None,
            _ => Some(short(block.summary().as_str())),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
