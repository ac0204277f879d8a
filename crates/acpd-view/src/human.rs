//! Durations, sizes and numbers for users.

pub use acp_wire::acp::fence;
use acpd_api::{Cost, Untrusted, Usage};

use crate::text;
use crate::text::Text;

/// Formats a duration with at most two units: `8s`, `3m`, `2h 5m`, `4d 1h`.
pub fn duration(ms: u64) -> Text {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: u64, unit: &'static str, small: u64, part: &'static str| match small {
        0 => text!("{}{}", big, unit),
        _ => text!("{}{} {}{}", big, unit, small, part),
    };
    match seconds {
        0..60 => text!("{}s", seconds),
        60..3600 => text!("{}m", minutes),
        3600..86_400 => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// Formats a directory, with `~` for the user's home.
pub fn directory(path: &Untrusted, home: Option<&str>) -> Text {
    let home = home.map(|home| home.trim_end_matches('/')).filter(|home| !home.is_empty());
    match home.and_then(|home| path.raw().strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => text!("~{}", Untrusted::from(rest)),
        _ => path.into(),
    }
}

/// Formats a size: `512 B`, `1.5 KB`, `64 MB`.
pub fn bytes(size: u64) -> Text {
    let mut value = size as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if unit != "B" && value < 10.0 {
            return text!("{:.1} {}", value, unit);
        }
        if value < 1000.0 || unit == "GB" {
            return text!("{:.0} {}", value, unit);
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}

/// Formats a large number: `999`, `1.5k`, `200k`, `1.2M`.
pub fn count(number: u64) -> Text {
    let (value, unit) = match number {
        0..1_000 => return text!("{}", number),
        1_000..999_500 => (number as f64 / 1e3, "k"),
        _ => (number as f64 / 1e6, "M"),
    };
    if value < 9.95 { text!("{:.1}{}", value, unit) } else { text!("{:.0}{}", value, unit) }
}

/// Formats a number with its noun: `1 prompt`, `2 prompts`.
pub fn counted(number: impl TryInto<u64>, what: &'static str) -> Text {
    let number = number.try_into().unwrap_or(u64::MAX);
    text!("{} {}{}", number, what, if number == 1 { "" } else { "s" })
}

/// Formats a cost: `$0.12`, `0.12 EUR`.
pub fn cost(Cost { amount, currency }: &Cost) -> Text {
    match currency.raw() {
        "USD" => text!("${}", *amount),
        _ => text!("{} {}", *amount, currency),
    }
}

/// Formats costs with their currencies: `0.12 USD, 0.34 EUR`.
pub fn costs<'a>(costs: impl IntoIterator<Item = &'a Cost>) -> Text {
    let costs = costs.into_iter();
    Text::join(costs.map(|cost| text!("{} {}", cost.amount, cost.currency)), ", ")
}

/// Formats reported usage: `12k of 200k tokens in the context, 0.42 USD`.
pub fn usage(usage: &Usage) -> Text {
    let tokens = usage.used.map(|used| match usage.size.filter(|size| *size > 0) {
        Some(size) => text!("{} of {} tokens in the context", count(used), count(size)),
        None => text!("{} tokens in the context", count(used)),
    });
    Text::join(tokens.into_iter().chain(usage.cost.as_ref().map(|cost| costs([cost]))), ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_a_tilde() {
        let shown = |path: &str, home| directory(&path.into(), home).to_string();
        assert_eq!(shown("/home/ada/src", Some("/home/ada")), "~/src");
        assert_eq!(shown("/home/ada", Some("/home/ada/")), "~");
        assert_eq!(shown("/home/adam", Some("/home/ada")), "/home/adam");
        assert_eq!(shown("/srv", Some("/")), "/srv");
        assert_eq!(shown("/home/ada", None), "/home/ada");
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let shown: Vec<Text> =
            [0, 999, 8_400, 60_000, 3_599_000, 3_600_000, 7_500_000, 86_400_000, 349_300_000]
                .map(duration)
                .into();
        assert_eq!(
            shown,
            ["0s", "0s", "8s", "1m", "59m", "1h", "2h 5m", "1d", "4d 1h"].map(Text::from)
        );
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let shown: Vec<Text> =
            [0, 999, 1_000, 1_536, 20 << 20, 67_108_864, 3 << 40].map(bytes).into();
        assert_eq!(
            shown,
            ["0 B", "999 B", "1.0 KB", "1.5 KB", "20 MB", "64 MB", "3072 GB"].map(Text::from)
        );
    }

    #[test]
    fn counts_are_rounded_to_what_can_be_read() {
        let shown: Vec<Text> =
            [0, 999, 1_000, 1_549, 9_960, 200_000, 999_600, 1_240_000].map(count).into();
        assert_eq!(
            shown,
            ["0", "999", "1.0k", "1.5k", "10k", "200k", "1.0M", "1.2M"].map(Text::from)
        );
    }
}
