//! Numbers, sizes, amounts of money, durations.

use std::time::Duration;

use acpd_api::{Amount, Cost};
use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use super::{Kind, quoted};
use crate::config::keys::fault::{Fault, string};
use crate::config::keys::schema::{Schema, text};

/// A whole number of at least 1.
pub(crate) struct Count;

impl Kind for Count {
    type Value = u32;

    fn describe() -> String {
        "a whole number from 1".to_owned()
    }

    fn schema() -> Schema {
        json!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<u32, Fault> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(Fault::wrong_type(value, &Self::describe()));
        };
        match u32::from_str_radix(number.as_str(), number.radix()) {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                let reason = format!("must be {}, not {number}", Self::describe());
                Err(Fault::new(value, reason))
            }
        }
    }

    fn show(value: &u32) -> String {
        value.to_string()
    }
}

/// The number of a port; 0 stands for a free one.
pub(crate) struct Port;

impl Kind for Port {
    type Value = Option<u16>;

    fn describe() -> String {
        "a port from 0 to 65535".to_owned()
    }

    fn schema() -> Schema {
        json!({"type": "integer", "minimum": 0, "maximum": u16::MAX})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<u16>, Fault> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(Fault::wrong_type(value, &Self::describe()));
        };
        u16::from_str_radix(number.as_str(), number.radix())
            .map(Some)
            .map_err(|_| Fault::new(value, format!("must be {}, not {number}", Self::describe())))
    }

    fn show(value: &Option<u16>) -> String {
        value.map_or_else(String::new, |port| port.to_string())
    }
}

/// A size in bytes, at most `MOST`.
pub(crate) struct SizeUpTo<const MOST: u64>;

/// A size in bytes.
pub(crate) type Size = SizeUpTo<{ i64::MAX as u64 }>;

/// How long a line may be, in bytes.
pub(crate) type LineSize = SizeUpTo<LONGEST_LINE>;

/// The longest line that can be allowed, in bytes: what hosts keep of an agent's output must hold it
/// twice.
pub const LONGEST_LINE: u64 = 128 << 20;

/// Smaller than this, a size is a forgotten unit.
const LEAST_SIZE: u64 = 4096;

const SIZE_UNITS: [(&str, u64); 4] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl<const MOST: u64> Kind for SizeUpTo<MOST> {
    type Value = u64;

    fn describe() -> String {
        "a size like \"64MiB\", or a number of bytes".to_owned()
    }

    fn schema() -> Schema {
        json!({"anyOf": [
            {"type": "integer", "minimum": LEAST_SIZE, "maximum": MOST},
            text(&with_units("[0-9]+", &SIZE_UNITS))
        ]})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<u64, Fault> {
        let size = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            DeValue::String(text) => with_unit(text, &SIZE_UNITS),
            _ => return Err(Fault::wrong_type(value, &Self::describe())),
        };
        match size.filter(|size| i64::try_from(*size).is_ok()) {
            Some(size) if size < LEAST_SIZE => {
                Err(Fault::new(value, format!("is too small at {size} bytes"))
                    .hint("the least is \"4KiB\"; the units are B, KiB, MiB and GiB"))
            }
            Some(size) if size > MOST => {
                Err(Fault::new(value, format!("is too large at {size} bytes"))
                    .hint(format!("the most is {}", Self::show(&MOST))))
            }
            Some(size) => Ok(size),
            None => Err(Fault::new(value, format!("must be {}", Self::describe()))
                .hint("the units are B, KiB, MiB and GiB")),
        }
    }

    fn show(value: &u64) -> String {
        quoted(&shortest(*value, &SIZE_UNITS))
    }
}

/// An amount of money, or nothing.
pub(crate) struct Money;

impl Kind for Money {
    type Value = Option<Cost>;

    fn describe() -> String {
        "an amount and its currency, like \"5 USD\"".to_owned()
    }

    fn schema() -> Schema {
        text("^[^ ]+ [A-Z]{3}$")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<Cost>, Fault> {
        let text = string(value, &Self::describe())?;
        let cost = text.split_once(' ').and_then(|(units, currency)| {
            let amount = Amount::from_units(units.parse().ok()?)?;
            let is_code = currency.len() == 3 && currency.bytes().all(|b| b.is_ascii_uppercase());
            // With nothing to spend, a yes would let nothing begin.
            (is_code && amount > Amount::default())
                .then(|| Cost { amount, currency: currency.into() })
        });
        match cost {
            Some(cost) => Ok(Some(cost)),
            None => Err(Fault::new(value, format!("must be {}, not {text:?}", Self::describe()))),
        }
    }

    fn show(value: &Option<Cost>) -> String {
        let show = |cost: &Cost| format!("{} {}", cost.amount.units(), cost.currency.raw());
        value.as_ref().map_or_else(String::new, |cost| quoted(&show(cost)))
    }
}

const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Longer waits are refused: the sums of clocks and durations must not overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// A number directly followed by one of the units.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The form of a number directly followed by one of the units.
fn with_units(number: &str, units: &[(&str, u64)]) -> String {
    let units: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
    format!("^{number}({})$", units.join("|"))
}

/// The number with the largest unit that divides it; the last unit is 1.
fn shortest(number: u64, units: &[(&str, u64)]) -> String {
    let fits = units.iter().find(|(_, factor)| number.is_multiple_of(*factor) && number > 0);
    let (unit, factor) = fits.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{unit}", number / factor)
}

fn duration(value: &Spanned<DeValue<'_>>, wanted: &str) -> Result<Duration, Fault> {
    let units = "the units are ms, s, m, h and d, as in \"250ms\" or \"30m\"";
    let text = match value.get_ref() {
        DeValue::Integer(_) => return Err(Fault::wrong_type(value, wanted).hint(units)),
        _ => string(value, wanted)?,
    };
    match with_unit(text, &TIME_UNITS).map(Duration::from_millis) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err(Fault::new(value, "is longer than a year")),
        None => Err(Fault::new(value, format!("must be {wanted}")).hint(units)),
    }
}

fn show_duration(duration: Duration) -> String {
    quoted(&shortest(duration.as_millis() as u64, &TIME_UNITS))
}

/// A duration, zero included.
pub(crate) struct Time;

impl Kind for Time {
    type Value = Duration;

    fn describe() -> String {
        "a duration like \"3s\"".to_owned()
    }

    fn schema() -> Schema {
        text(&with_units("[0-9]+", &TIME_UNITS))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Duration, Fault> {
        duration(value, &Self::describe())
    }

    fn show(value: &Duration) -> String {
        show_duration(*value)
    }
}

/// A duration that is more than zero.
pub(crate) struct Timeout;

impl Kind for Timeout {
    type Value = Duration;

    fn describe() -> String {
        "a duration like \"30s\"".to_owned()
    }

    fn schema() -> Schema {
        text(&with_units("0*[1-9][0-9]*", &TIME_UNITS))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Duration, Fault> {
        match duration(value, &Self::describe())? {
            Duration::ZERO => Err(Fault::new(value, "must be more than zero")),
            duration => Ok(duration),
        }
    }

    fn show(value: &Duration) -> String {
        show_duration(*value)
    }
}

/// A duration, or never.
pub(crate) struct TimeOrNever;

impl Kind for TimeOrNever {
    type Value = Option<Duration>;

    fn describe() -> String {
        "a duration like \"30m\", or \"0\" for never".to_owned()
    }

    fn schema() -> Schema {
        json!({"anyOf": [{"const": "0"}, Time::schema()]})
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<Duration>, Fault> {
        if value.get_ref().as_str() == Some("0") {
            return Ok(None);
        }
        let duration = duration(value, &Self::describe())?;
        Ok(Some(duration).filter(|duration| !duration.is_zero()))
    }

    fn show(value: &Option<Duration>) -> String {
        value.map_or_else(|| quoted("0"), show_duration)
    }
}
