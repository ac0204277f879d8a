//! Times and sizes for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Milliseconds since the epoch, now.
pub(crate) fn now() -> u64 {
    Timestamp::now().as_millisecond().try_into().unwrap_or(0)
}

/// A duration in at most two units: `8s`, `3m`, `2h 5m`, `4d 1h`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit} {small}{part}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m"),
        3600..86_400 => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// How long ago a time was, or `-` for the time 0.
pub(crate) fn ago(at: u64, now: u64) -> String {
    match (at, now.saturating_sub(at)) {
        (0, _) => "-".to_owned(),
        (_, 0..1000) => "now".to_owned(),
        (_, passed) => format!("{} ago", duration(passed)),
    }
}

/// A time on this machine's clock: `2026-11-21 08:15:00`.
pub(crate) fn clock(at: u64) -> String {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).map_or_else(
        || "-".to_owned(),
        |at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// A size: `512 B`, `1.5 KB`, `64 MB`.
pub(crate) fn bytes(size: u64) -> String {
    let mut value = size as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1000.0 || unit == "GB" {
            let digits = usize::from(unit != "B" && value < 10.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}

/// A big number: `999`, `1.5k`, `200k`, `1.2M`.
pub(crate) fn count(number: u64) -> String {
    let (value, unit) = match number {
        0..1_000 => return number.to_string(),
        1_000..999_500 => (number as f64 / 1e3, "k"),
        _ => (number as f64 / 1e6, "M"),
    };
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$}{unit}")
}

/// A text as a code block of Markdown that it cannot end itself.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown: Vec<String> =
            [0, 999, 8_400, 60_000, 3_599_000, 3_600_000, 7_500_000, 86_400_000, 349_300_000]
                .map(duration)
                .into();
        assert_eq!(shown, ["0s", "0s", "8s", "1m", "59m", "1h", "2h 5m", "1d", "4d 1h"]);
    }

    #[test]
    fn ages_are_relative_and_zero_is_never() {
        assert_eq!(ago(0, 5_000), "-");
        assert_eq!(ago(4_500, 5_000), "now");
        assert_eq!(ago(5_000, 125_000), "2m ago");
        assert_eq!(ago(9_000, 5_000), "now");
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let shown: Vec<String> =
            [0, 999, 1_000, 1_536, 20 << 20, 67_108_864, 3 << 40].map(bytes).into();
        assert_eq!(shown, ["0 B", "999 B", "1.0 KB", "1.5 KB", "20 MB", "64 MB", "3072 GB"]);
    }

    #[test]
    fn counts_are_rounded_to_what_can_be_read() {
        let shown: Vec<String> =
            [0, 999, 1_000, 1_549, 9_960, 200_000, 999_600, 1_240_000].map(count).into();
        assert_eq!(shown, ["0", "999", "1.0k", "1.5k", "10k", "200k", "1.0M", "1.2M"]);
    }
}
