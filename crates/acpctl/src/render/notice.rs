//! The daemon's notices as sentences.

use acpd_api::{
    Outcome, PermissionDecided, PromptQueued, RestoreLevel, Restored, SessionNotice, Skipped,
    TurnEnded, Unanswered, method,
};
use serde::Deserialize;

use super::about::named;
use crate::human;
use crate::paint::{DIM, Paint, RED, YELLOW, one_line};

/// The line for a notice; `None` for those that say nothing to a person. Without `whole`, what the
/// answer to the prompt tells as well is left out.
pub(super) fn notice(name: &str, params: &str, whole: bool, paint: Paint) -> Option<String> {
    let (style, sentence) = styled(name, params, whole)?;
    Some(paint.apply(style, &sentence) + "\n")
}

/// What a notice says, for a transcript.
pub(crate) fn sentence(name: &str, params: &str) -> Option<String> {
    styled(name, params, true).map(|(_, sentence)| sentence)
}

fn styled(name: &str, params: &str, whole: bool) -> Option<(anstyle::Style, String)> {
    Some(match name {
        method::TURN_ENDED if whole => ended(&read::<TurnEnded>(params)?.outcome)?,
        method::RESTORED => {
            let notice: Restored = read(params)?;
            if notice.level == RestoreLevel::Lost && !whole {
                return None;
            }
            restored(&notice)?
        }
        method::NOTICE => {
            let notice: SessionNotice = read(params)?;
            (if notice.severity == "info" { DIM } else { YELLOW }, one_line(&notice.text))
        }
        method::SKIPPED => {
            let Skipped { bytes, limit, .. } = read(params)?;
            let (bytes, limit) = (human::bytes(bytes), human::bytes(limit));
            (YELLOW, format!("a line of {bytes} is left out: the limit is {limit}"))
        }
        method::PERMISSION_DECIDED => (DIM, decided(&read(params)?)),
        method::PROMPT_QUEUED => {
            let PromptQueued { ahead, .. } = read(params)?;
            let prompts =
                if ahead == 1 { "1 prompt".to_owned() } else { format!("{ahead} prompts") };
            (DIM, format!("waiting: {prompts} of this session first"))
        }
        method::UNANSWERED => {
            let Unanswered { agent, method, waited, .. } = read(params)?;
            let waited = human::duration(waited);
            let sentence = format!(
                "agent `{agent}` has not answered `{method}` for {waited}; Ctrl-C gives up, `acpctl \
                 agent restart {agent}` ends the agent"
            );
            (YELLOW, one_line(&sentence))
        }
        _ => return None,
    })
}

fn ended(outcome: &Outcome) -> Option<(anstyle::Style, String)> {
    Some(match outcome {
        Outcome::Stopped { stop_reason } if stop_reason == "end_turn" => return None,
        Outcome::Stopped { stop_reason } => {
            (DIM, format!("turn ended: {}", one_line(&stop_reason.replace('_', " "))))
        }
        Outcome::Error { message, .. } => (RED, format!("turn failed: {}", one_line(message))),
        Outcome::Interrupted { reason } => (
            YELLOW,
            format!("turn interrupted: {}; the last message may be incomplete", one_line(reason)),
        ),
        Outcome::Unwedged { reason } => {
            (YELLOW, format!("turn cancelled: {}; the session comes back", one_line(reason)))
        }
        Outcome::OutcomeUnknown { reason } => (
            YELLOW,
            format!(
                "outcome unknown: {}; the prompt is not sent again by itself: look at what was done",
                one_line(reason)
            ),
        ),
    })
}

fn decided(decided: &PermissionDecided) -> String {
    let verb = if decided.verdict == "allow" { "allowed" } else { "denied" };
    let title = decided.title.as_deref().unwrap_or("a tool call");
    let asked = named(title, decided.subject.as_deref());
    format!("{verb} by {}: {asked}", one_line(&decided.by))
}

fn restored(restored: &Restored) -> Option<(anstyle::Style, String)> {
    let reason = restored.reason.as_deref().map(one_line);
    Some(match restored.level {
        RestoreLevel::Exact | RestoreLevel::Renewed => return None,
        RestoreLevel::Resumed | RestoreLevel::Loaded => {
            (DIM, "session restored: the agent has the conversation again".to_owned())
        }
        RestoreLevel::Reseeded => (
            YELLOW,
            format!(
                "previous session could not be restored: {}; the agent goes on with a summary; \
                 your history is intact",
                reason.unwrap_or_else(|| "the agent no longer has it".to_owned())
            ),
        ),
        RestoreLevel::Lost => (
            RED,
            format!(
                "session lost: {}; your history is intact",
                reason.unwrap_or_else(|| "the agent no longer has it".to_owned())
            ),
        ),
    })
}

fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Option<T> {
    serde_json::from_str(params).ok()
}
