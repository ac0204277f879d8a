//! Durations and times as people type them.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Reads a duration: `90s`, `10m`, `2h 30m`, `30d`. A day has 24 hours.
pub(crate) fn duration(typed: &str) -> Result<Duration, String> {
    let span: Span = typed.trim().parse().map_err(|_| odd_duration(typed))?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    length.and_then(|length| length.try_into().ok()).ok_or_else(|| odd_duration(typed))
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
    fn a_duration_has_numbers_and_units() {
        let seconds = |typed| duration(typed).map(|length| length.as_secs());
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
