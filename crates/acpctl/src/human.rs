//! Times and sizes for people.

use acpd_api::Untrusted;
use jiff::Timestamp;
use jiff::tz::TimeZone;

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
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).map_or_else(
        || "-".into(),
        |at| {
            let zoned = at.to_zoned(TimeZone::system());
            Untrusted::of(zoned.strftime("%Y-%m-%d %H:%M:%S")).into()
        },
    )
}

/// A day on this machine's clock: `2026-11-21`.
pub(crate) fn day(at: u64) -> Text {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).map_or_else(
        || "-".into(),
        |at| Untrusted::of(at.to_zoned(TimeZone::system()).date()).into(),
    )
}
