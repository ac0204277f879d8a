//! Times, sizes and states for users, and durations and times as users type them.

use std::time::Duration;

use acpd_api::Untrusted;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned};
use serde::Serialize;
use serde_json::Value;

pub(crate) use acpd_view::human::{
    bytes, costs, count, counted, directory, duration, fence, usage,
};

use crate::text::{Text, text};

pub(crate) fn now() -> u64 {
    Timestamp::now().as_millisecond().try_into().unwrap_or(0)
}

/// Returns the age of a time, or `-` for 0.
pub(crate) fn ago(at: u64, now: u64) -> Text {
    match (at, now.saturating_sub(at)) {
        (0, _) => "-".into(),
        (_, 0..1000) => "now".into(),
        (_, passed) => text!("{} ago", duration(passed)),
    }
}

/// Formats a local time: `2026-11-21 08:15:00`.
pub(crate) fn clock(at: u64) -> Text {
    local(at, "%Y-%m-%d %H:%M:%S")
}

/// Formats a local time with `strftime`.
pub(crate) fn local(at: u64, format: &str) -> Text {
    let at = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let shown = |at: Timestamp| Untrusted::of(at.to_zoned(TimeZone::system()).strftime(format));
    at.map_or_else(|| "-".into(), |at| shown(at).into())
}

pub(crate) fn word(state: &impl Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(Value::String(word)) => word,
        _ => "-".to_owned(),
    }
}

/// Reads a duration: `90s`, `10m`, `2h 30m`, `30d`. A day has 24 hours.
pub(crate) fn read_duration(typed: &str) -> Result<Duration, String> {
    let span: Span = typed.trim().parse().map_err(|_| odd_duration(typed))?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    length.and_then(|length| length.try_into().ok()).ok_or_else(|| odd_duration(typed))
}

/// Reads a time, in ms since the epoch: an age (`2h`), a time of today (`09:30`), a day, a day and
/// a time, or all of it with an offset.
pub(crate) fn read_time(typed: &str) -> Result<u64, String> {
    time_at(typed.trim(), &Zoned::now().with_time_zone(TimeZone::system()))
}

fn time_at(typed: &str, now: &Zoned) -> Result<u64, String> {
    let local = |time: DateTime| time.to_zoned(now.time_zone().clone()).ok();
    let ago = || {
        let passed = read_duration(typed).ok()?.try_into().ok()?;
        now.timestamp().checked_sub::<SignedDuration>(passed).ok()
    };
    let today = || Some(local(now.date().to_datetime(typed.parse::<Time>().ok()?))?.timestamp());
    let day = || Some(local(typed.parse().ok()?)?.timestamp());
    let found = ago().or_else(|| typed.parse::<Timestamp>().ok()).or_else(day).or_else(today);
    found.and_then(|at| u64::try_from(at.as_millisecond()).ok()).ok_or_else(|| {
        "a time is an age (2h, 3d), 09:30, 2026-11-22, or '2026-11-22 09:30'".to_owned()
    })
}

fn odd_duration(typed: &str) -> String {
    match typed.trim().parse::<u64>() {
        Ok(number) => {
            format!("`{typed}` has no unit: {number}s, {number}m, {number}h or {number}d")
        }
        Err(_) => "a duration is a number and a unit: 90s, 10m, 2h, 30d".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_a_time_of_today_or_a_date() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(TimeZone::UTC);
        let at = |typed| {
            let at = i64::try_from(time_at(typed, &now)?).unwrap();
            Ok::<_, String>(Timestamp::from_millisecond(at).unwrap().to_string())
        };
        assert_eq!(at("2h").unwrap(), "2026-11-22T10:00:00Z");
        assert_eq!(at("1d").unwrap(), "2026-11-21T12:00:00Z");
        assert_eq!(at("09:30").unwrap(), "2026-11-22T09:30:00Z");
        assert_eq!(at("2026-11-20").unwrap(), "2026-11-20T00:00:00Z");
        assert_eq!(at("2026-11-20 09:30").unwrap(), "2026-11-20T09:30:00Z");
        assert_eq!(at("2026-11-20T09:30:00+01:00").unwrap(), "2026-11-20T08:30:00Z");
        assert!(at("yesterday").unwrap_err().starts_with("a time is"));
    }

    #[test]
    fn a_duration_has_numbers_and_units() {
        let seconds = |typed| read_duration(typed).map(|length| length.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("2h 30m"), Ok(9_000));
        assert_eq!(seconds("30d"), Ok(30 * 86_400));
        assert_eq!(seconds("2w"), Ok(14 * 86_400));
        assert_eq!(seconds("90"), Err("`90` has no unit: 90s, 90m, 90h or 90d".to_owned()));
        for odd in ["", "soon", "-5m", "1mo"] {
            assert!(seconds(odd).is_err(), "{odd}");
        }
    }
}
