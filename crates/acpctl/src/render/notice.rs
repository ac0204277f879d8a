//! The daemon's notices as sentences.

use acpd_api::{
    AnswerInfo, ClientName, CutShort, Outcome, PermissionDecided, PromptQueued, QuestionAnswered,
    RestoreLevel, Restored, SessionNotice, Skipped, TurnEnded, Unanswered, Untrusted, method,
};
use anstyle::Style;
use serde::Deserialize;

use super::about::named;
use crate::human;
use crate::paint::{DIM, Paint, RED, YELLOW};
use crate::text::{Text, text};

/// The line for a notice; `None` for those that say nothing to a person. Without `whole`, what the
/// answer to the prompt tells as well is left out.
pub(super) fn notice(name: &str, params: &str, whole: bool, paint: Paint) -> Option<Text> {
    let (style, sentence) = styled(name, params, whole)?;
    Some(paint.apply(style, sentence) + "\n")
}

/// What a notice says, for a transcript.
pub(crate) fn sentence(name: &str, params: &str) -> Option<Text> {
    styled(name, params, true).map(|(_, sentence)| sentence)
}

fn styled(name: &str, params: &str, whole: bool) -> Option<(Style, Text)> {
    Some(match name {
        method::TURN_ENDED if whole => ended(&read(params)?)?,
        method::RESTORED => {
            let notice: Restored = read(params)?;
            if notice.level == RestoreLevel::Lost && !whole {
                return None;
            }
            restored(&notice)?
        }
        method::NOTICE => {
            let notice: SessionNotice = read(params)?;
            (if notice.severity == "info" { DIM } else { YELLOW }, notice.text.into())
        }
        method::SKIPPED => {
            let Skipped { bytes, limit, .. } = read(params)?;
            let (bytes, limit) = (human::bytes(bytes), human::bytes(limit));
            (YELLOW, text!("a line of {} was left out: the limit is {}", bytes, limit))
        }
        method::ANSWERED if whole => (DIM, answered(&read(params)?)),
        method::PERMISSION_DECIDED => (DIM, decided(&read(params)?)),
        method::PROMPT_QUEUED => {
            let PromptQueued { ahead, .. } = read(params)?;
            let prompts = if ahead == 1 { "prompt" } else { "prompts" };
            (DIM, text!("waiting for {} earlier {} in this session", ahead, prompts))
        }
        method::UNANSWERED => {
            let Unanswered { agent, method, waited, .. } = read(params)?;
            let waited = human::duration(waited);
            let sentence = text!(
                "agent `{}` has not answered `{}` for {}; Ctrl-C gives up, `acpctl agent restart {}` \
                 ends the agent",
                agent,
                method,
                waited,
                agent
            );
            (YELLOW, sentence)
        }
        _ => return None,
    })
}

fn ended(ended: &TurnEnded) -> Option<(Style, Text)> {
    if let (Some(cut), Outcome::Stopped { .. }) = (&ended.cut_short, &ended.outcome) {
        return Some((DIM, text!("turn ended: {}", cut_short(cut))));
    }
    Some(match &ended.outcome {
        Outcome::Stopped { stop_reason } if *stop_reason == "end_turn" => return None,
        Outcome::Stopped { stop_reason } => {
            let reason = Untrusted::from(stop_reason.raw().replace('_', " "));
            (DIM, text!("turn ended: {}", reason))
        }
        Outcome::Error { message, .. } => (RED, text!("turn failed: {}", message)),
        Outcome::Interrupted { reason } => {
            (YELLOW, text!("turn interrupted: {}; the last message may be incomplete", reason))
        }
        Outcome::Unwedged { reason } => {
            (YELLOW, text!("turn cancelled: {}; acpd restores the session", reason))
        }
        Outcome::OutcomeUnknown { reason } => (
            YELLOW,
            text!(
                "outcome unknown: {}; acpd does not send the prompt again: check what was done",
                reason
            ),
        ),
    })
}

/// A client, as people know it.
pub(crate) fn who(client: &ClientName) -> Text {
    let name = client.title.as_ref().unwrap_or(&client.name);
    let name = if name.is_empty() { "another client".into() } else { Text::from(name) };
    let place = client.place.as_ref().map(|place| text!(" ({})", place));
    text!("{}{}", name, place)
}

/// Why a turn was cut short, and who did it.
pub(crate) fn cut_short(cut: &CutShort) -> Text {
    let by = cut.by.as_ref().map(|by| text!(" by {}", who(by)));
    text!("{}{}", cut.why, by)
}

/// What a question was answered with.
pub(crate) fn answer(answered: &QuestionAnswered) -> Text {
    match &answered.answer {
        AnswerInfo::Option { option } => (&option.name).into(),
        AnswerInfo::Accept => "accepted".into(),
        AnswerInfo::Decline => "declined".into(),
        AnswerInfo::Cancel => "left open".into(),
    }
}

fn answered(answered: &QuestionAnswered) -> Text {
    let title = answered.title.clone().unwrap_or_else(|| "a question".into());
    let asked = named(&title, answered.subject.as_ref());
    text!("answered by {}: {}: {}", who(&answered.by), answer(answered), asked)
}

fn decided(decided: &PermissionDecided) -> Text {
    let verb = if decided.verdict == "allow" { "allowed" } else { "denied" };
    let title = decided.title.clone().unwrap_or_else(|| "a tool call".into());
    text!("{} by {}: {}", verb, decided.by, named(&title, decided.subject.as_ref()))
}

fn restored(restored: &Restored) -> Option<(Style, Text)> {
    let reason =
        restored.reason.as_ref().map_or_else(|| "the agent no longer has it".into(), Text::from);
    Some(match restored.level {
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
        RestoreLevel::Resumed | RestoreLevel::Loaded => {
            (DIM, "session restored: the agent has the conversation again".into())
        }
        RestoreLevel::Reseeded => (
            YELLOW,
            text!(
                "previous session could not be restored: {}; the agent continues with a summary; \
                 your history is intact",
                reason
            ),
        ),
        RestoreLevel::Lost => (RED, text!("session lost: {}; your history is intact", reason)),
    })
}

fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Option<T> {
    serde_json::from_str(params).ok()
}
