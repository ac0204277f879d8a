//! Notices of acpd and of agents as blocks.

use acpd_api::{
    AnswerInfo, ClientName, CutShort, Outcome, PermissionDecided, QuestionAnswered, RestoreLevel,
    Restored, SessionNotice, Untrusted, method,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Step;
use crate::about::named;
use crate::block::{Block, Kind, Notice, Progress, Question, Severity, Source, Topic};
use crate::lenient::{NOT_READ, text};
use crate::text;
use crate::text::Text;

/// Returns none for a notice that users need not see.
pub(super) fn block(step: &Step<'_>, method: &str, params: Map<String, Value>) -> Option<Block> {
    let kind = match method {
        method::TURN_ENDED => Kind::Turn(Box::new(read(step, &params)?)),
        method::RESTORED => Kind::Notice(restored(&read(step, &params)?)?),
        method::NOTICE => {
            let SessionNotice { severity, text, .. } = read(step, &params)?;
            let is_info = severity == "info";
            let severity = if is_info { Severity::Info } else { Severity::Warning };
            Kind::Notice(notice(severity, text))
        }
        method::SKIPPED => Kind::Gap(read(step, &params)?),
        method::PERMISSION_DECIDED => Kind::Question(decided(read(step, &params)?)),
        method::ANSWERED => Kind::Question(answered(read(step, &params)?)),
        _ => return None,
    };
    let progress = match &kind {
        Kind::Turn(ended) => match ended.outcome {
            Outcome::Stopped { .. } => Progress::Done,
            Outcome::Error { .. } => Progress::Failed,
            _ => Progress::Interrupted,
        },
        _ => Progress::Done,
    };
    let source = Source { method: method.to_owned(), params };
    Some(Block { source: Some(Box::new(source)), ..Block::new(step.seq, kind, progress) })
}

pub(super) fn of_agent(step: &Step<'_>, update: &Map<String, Value>) -> Option<Block> {
    let title = text(update, "title").map(Text::from).unwrap_or_default();
    let sentence = match text(update, "description").map(Text::from) {
        Some(more) if !more.is_empty() => text!("{}: {}", title, more),
        _ => title,
    };
    let (severity, progress) = match update.get("severity").and_then(Value::as_str) {
        Some("error") => (Severity::Error, Progress::Failed),
        Some("warning") => (Severity::Warning, Progress::Done),
        _ => (Severity::Info, Progress::Done),
    };
    let is_empty = sentence.is_empty();
    let kind = Kind::Notice(notice(severity, sentence));
    (!is_empty).then(|| Block::new(step.seq, kind, progress))
}

pub(super) fn unread(step: &Step<'_>, what: &'static str) -> Block {
    let notice = notice(Severity::Warning, text!("{} {}", what, NOT_READ));
    Block::new(step.seq, Kind::Notice(notice), Progress::Done)
}

pub(super) fn mode(step: &Step<'_>, id: &Untrusted, name: &Untrusted) -> Block {
    let topic = Topic::Mode(id.clone());
    let notice = Notice { topic, ..notice(Severity::Info, text!("mode: {}", name)) };
    Block::new(step.seq, Kind::Notice(notice), Progress::Done)
}

pub(super) fn compaction(
    id: &Untrusted,
    update: &Map<String, Value>,
) -> Option<(Progress, Notice)> {
    let (progress, severity, sentence) = match update.get("status").and_then(Value::as_str)? {
        "in_progress" => (Progress::Running, Severity::Info, "compacting the conversation".into()),
        "completed" => (Progress::Done, Severity::Info, "the conversation was compacted".into()),
        "failed" => {
            let why = text(update, "error").map(|why| text!(": {}", why));
            let sentence = text!("the conversation could not be compacted{}", why);
            (Progress::Failed, Severity::Warning, sentence)
        }
        "cancelled" => {
            let sentence = "compacting the conversation was cancelled".into();
            (Progress::Interrupted, Severity::Info, sentence)
        }
        _ => return None,
    };
    let topic = Topic::Compaction(id.clone());
    Some((progress, Notice { topic, ..notice(severity, sentence) }))
}

fn notice(severity: Severity, text: impl Into<Text>) -> Notice {
    Notice { severity, text: text.into(), topic: Topic::Any }
}

fn restored(restored: &Restored) -> Option<Notice> {
    let reason =
        restored.reason.as_ref().map_or_else(|| "the agent no longer has it".into(), Text::from);
    let (severity, sentence) = match restored.level {
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
        RestoreLevel::Resumed | RestoreLevel::Loaded => {
            (Severity::Info, "conversation restored".into())
        }
        RestoreLevel::Partial => (
            Severity::Warning,
            text!(
                "conversation restored in part: {}; the agent may not have the rest; your history is intact",
                reason
            ),
        ),
        RestoreLevel::Reseeded => (
            Severity::Warning,
            text!(
                "previous session could not be restored: {}; the agent continues with {}; \
                 your history is intact",
                reason,
                restored.gets.unwrap_or_default().name()
            ),
        ),
        RestoreLevel::Lost => {
            (Severity::Error, text!("session lost: {}; your history is intact", reason))
        }
    };
    Some(Notice { topic: Topic::Restored(restored.level), ..notice(severity, sentence) })
}

fn decided(decided: PermissionDecided) -> Question {
    let PermissionDecided { tool_call_id: tool_call, title, subject, verdict, by, .. } = decided;
    let about = named(title.as_ref(), subject.as_ref());
    let is_refused = verdict != "allow";
    let verdict = if is_refused { "denied" } else { "allowed" }.into();
    Question { id: Untrusted::default(), tool_call, about, verdict, by: by.into(), is_refused }
}

fn answered(answered: QuestionAnswered) -> Question {
    let QuestionAnswered { id, tool_call_id: tool_call, title, subject, answer, by, .. } = answered;
    let about = named(title.as_ref(), subject.as_ref());
    let verdict = match &answer {
        AnswerInfo::Option { option } => match option.kind.raw() {
            "allow_once" => "allowed once".into(),
            "allow_always" => "allowed always".into(),
            "reject_once" => "denied once".into(),
            "reject_always" => "denied always".into(),
            _ => text!("answered `{}`", option.name),
        },
        AnswerInfo::Accept => "accepted".into(),
        AnswerInfo::Decline => "declined".into(),
        AnswerInfo::Cancel => "cancelled".into(),
    };
    let is_refused = matches!(&answer, AnswerInfo::Option { option }
        if option.kind.raw().starts_with("reject"));
    Question { id, tool_call, about, verdict, by: person(&by), is_refused }
}

/// Returns why a turn was cut short, and by whom: `cancelled by Zed`.
pub fn cut_short(cut: &CutShort) -> Text {
    let by = cut.by.as_ref().map(|by| text!(" by {}", person(by)));
    text!("{}{}", cut.why, by)
}

/// Returns a client with its user's place: `Zed`, `acpctl, pts/3`.
pub fn person(client: &ClientName) -> Text {
    let name = client.title.as_ref().unwrap_or(&client.name);
    let name = if name.is_empty() { "a client".into() } else { Text::from(name) };
    match &client.place {
        Some(place) if !place.is_empty() => text!("{}, {}", name, place),
        _ => name,
    }
}

/// Reads a notice's params, and adds the session, which was removed from them.
fn read<T: for<'de> Deserialize<'de>>(step: &Step<'_>, params: &Map<String, Value>) -> Option<T> {
    let mut params = params.clone();
    params.insert("sessionId".to_owned(), step.session.raw().into());
    serde_json::from_value(Value::Object(params)).ok()
}
