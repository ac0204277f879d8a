//! End of an agent's usage limit, if the agent reports it in a known form:
//!
//! | form | of |
//! | --- | --- |
//! | `usage_limit_reached` with `resets_at` (seconds of the Unix epoch) or `resets_in_seconds` | Codex and what passes its errors on |
//! | `usage limit reached\|SECONDS` | Claude Code |
//! | `errorKind` `rate_limit`, after a `usage_update` whose `_meta` has a `_claude/rateLimit` with `status` `rejected` and `resetsAt` | claude-agent-acp |
//!
//! All forms are parts of errors. Times in prose or in answers are ignored.

use acp_wire::{ErrorObject, locate, str_at};
use serde::Deserialize;

use crate::ids::Time;
use crate::prompt::continues;

/// Minimum wait (ms). A time in the past means that the agent's clock differs.
const SHORTEST: u64 = 60_000;
/// Maximum wait (ms). A later time is no weekly limit.
const LONGEST: u64 = 8 * 24 * 3_600_000;

/// A prompt of acpd that waits for the end of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Held {
    pub(crate) until: Time,
    /// Number of limits in a row.
    pub(crate) waits: u64,
}

impl Held {
    pub(crate) fn meta(self) -> serde_json::Value {
        serde_json::json!({ "continues": true, "until": self.until, "waits": self.waits })
    }

    pub(crate) fn of(prompt: &[u8]) -> Option<Held> {
        let at = locate(prompt, &["params", "_meta", acpd_api::NAMESPACE])?;
        serde_json::from_slice(&prompt[at]).ok().filter(|_| continues(prompt))
    }
}

pub(crate) fn reported_end(update: &[u8]) -> Option<Time> {
    let path = |name| ["params", "update", "_meta", "_claude/rateLimit", name];
    if str_at(update, &path("status")).as_deref() != Some("rejected") {
        return None;
    }
    let at = locate(update, &path("resetsAt"))?;
    std::str::from_utf8(&update[at]).ok()?.parse().ok().map(from_seconds)
}

/// `reported`: the last end in a `usage_update`.
pub(crate) fn over(error: &ErrorObject, reported: Option<Time>, now: Time) -> Option<Time> {
    let data = error.data.as_ref().map_or("", |data| data.get());
    // JSON may be quoted in a message, once or twice.
    let text = format!("{} {data}", error.message).replace('\\', "");
    let number = |key: &str| -> Option<u64> {
        let rest = &text[text.find(key)? + key.len()..];
        let rest = rest.trim_start_matches(['"', ':', ' ']);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    };
    let at = if text.contains("usage_limit_reached") {
        let wait = || Some(now.after(number("resets_in_seconds")?.saturating_mul(1000)));
        number("resets_at").map(from_seconds).or_else(wait)
    } else if text.contains("usage limit reached|") {
        number("usage limit reached|").map(from_seconds)
    } else if text.contains("\"errorKind\":\"rate_limit\"") {
        reported
    } else {
        None
    };
    at.map(|at| at.max(now.after(SHORTEST))).filter(|at| *at <= now.after(LONGEST))
}

fn from_seconds(seconds: u64) -> Time {
    Time(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Time = Time(1_777_900_000_000);

    fn over_after(error: &serde_json::Value) -> Option<u64> {
        let error = serde_json::from_value(error.clone()).expect("an error");
        over(&error, Some(Time(1_777_903_600_000)), NOW).map(|at| (at.0 - NOW.0) / 1000)
    }

    #[test]
    fn the_known_forms_tell_a_time_and_nothing_else_does() {
        let codex = r#"Codex error: {"type":"error","error":{"type":"usage_limit_reached","resets_at":1777901800}}"#;
        assert_eq!(over_after(&json!({"code":-32603,"message":codex})), Some(1800));
        let data = json!({"error":{"type":"usage_limit_reached","resets_in_seconds":120}});
        assert_eq!(over_after(&json!({"code":-32603,"message":"x","data":data})), Some(120));
        let quoted = json!({"details":data.to_string()});
        assert_eq!(over_after(&json!({"code":-32603,"message":"x","data":quoted})), Some(120));
        let claude = "Claude AI usage limit reached|1777900900";
        assert_eq!(over_after(&json!({"code":-32603,"message":claude})), Some(900));
        let kind = json!({"errorKind":"rate_limit"});
        assert_eq!(over_after(&json!({"code":-32603,"message":"x","data":kind})), Some(3600));
        // A limit that is already over is waited for too, to prevent a loop.
        let past = "usage limit reached|1";
        assert_eq!(over_after(&json!({"code":-32603,"message":past})), Some(60));
        for other in [
            "You've hit your session limit · resets 5:20pm (Europe/Berlin)",
            "429 rate_limit_error",
            "usage limit reached|soon",
            "usage limit reached|99999999999999999999",
            "usage limit reached|2777900900",
            "usage_limit_reached",
        ] {
            assert_eq!(over_after(&json!({"code":-32603,"message":other})), None, "{other}");
        }
    }

    #[test]
    fn an_update_tells_of_a_limit_only_when_it_is_reached() {
        let update = |status: &str| {
            let limit = json!({"status":status,"resetsAt":1777});
            let update =
                json!({"sessionUpdate":"usage_update","_meta":{"_claude/rateLimit":limit}});
            json!({"params":{"update":update}}).to_string()
        };
        assert_eq!(reported_end(update("rejected").as_bytes()), Some(Time(1_777_000)));
        assert_eq!(reported_end(update("allowed_warning").as_bytes()), None);
    }

    #[test]
    fn a_prompt_tells_how_long_it_is_held_and_a_clients_is_not() {
        let held = Held { until: Time(7), waits: 2 };
        let prompt = |meta| json!({"params":{"_meta":{"_acpd":meta}}}).to_string();
        assert_eq!(Held::of(prompt(held.meta()).as_bytes()), Some(held));
        assert_eq!(Held::of(prompt(json!({"until":7,"waits":2})).as_bytes()), None);
    }
}
