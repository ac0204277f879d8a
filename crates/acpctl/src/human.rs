//! Times, sizes and states for people.

use acpd_api::Untrusted;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

pub(crate) use acpd_view::human::{bytes, count, counted, directory, duration, fence};

use crate::text::{Text, text};

/// Milliseconds since the epoch, now.
pub(crate) fn now() -> u64 {
    Timestamp::now().as_millisecond().try_into().unwrap_or(0)
}

/// Returns the age of a time, or `-` for the time 0.
pub(crate) fn ago(at: u64, now: u64) -> Text {
    match (at, now.saturating_sub(at)) {
        (0, _) => "-".into(),
        (_, 0..1000) => "now".into(),
        (_, passed) => text!("{} ago", duration(passed)),
    }
}

/// A time on this machine's clock: `2026-11-21 08:15:00`.
pub(crate) fn clock(at: u64) -> Text {
    local(at, "%Y-%m-%d %H:%M:%S")
}

/// A time on this machine's clock, in a format of `strftime`.
pub(crate) fn local(at: u64, format: &str) -> Text {
    let at = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let shown = |at: Timestamp| Untrusted::of(at.to_zoned(TimeZone::system()).strftime(format));
    at.map_or_else(|| "-".into(), |at| shown(at).into())
}

/// The word that a state has in JSON.
pub(crate) fn word(state: &impl Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(Value::String(word)) => word,
        _ => "-".to_owned(),
    }
}
