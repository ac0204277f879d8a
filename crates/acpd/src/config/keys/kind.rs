//! The kinds of values that keys have: how each is read, shown and documented.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use acpd_api::{Amount, Cost, KEY_NAMES, NAMESPACE, is_key_name};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::config::error::did_you_mean;
use crate::config::keys::fault::{Fault, all, list, string, table};
use crate::config::keys::variables::Variables;

/// A kind of value; [`Kind::show`] and [`Kind::read`] are inverse to each other.
pub(crate) trait Kind {
    /// What the program sees of it.
    type Value;

    /// What may be written, as in "must be …".
    fn describe() -> String;

    /// Reads a value.
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self::Value, Fault>;

    /// The value as TOML.
    fn show(value: &Self::Value) -> String;

    /// Lays what an inner table says over what was said before it.
    fn merge(slot: &mut Self::Value, new: Self::Value) {
        *slot = new;
    }
}

pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn quoted_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<_> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn describe() -> String {
        "true or false".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<bool, Fault> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(Fault::wrong_type(value, &Self::describe())),
        }
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

/// A whole number of at least 1.
pub(crate) struct Count;

impl Kind for Count {
    type Value = u32;

    fn describe() -> String {
        "a whole number from 1".to_owned()
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

/// A host, or its address, and a port.
pub(crate) struct Address;

impl Kind for Address {
    type Value = Option<String>;

    fn describe() -> String {
        "an address like \"127.0.0.1:4000\"".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<String>, Fault> {
        let text = string(value, &Self::describe())?;
        let valid = text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if valid {
            Ok(Some(text.to_owned()))
        } else {
            Err(Fault::new(value, format!("must be {}, not {text:?}", Self::describe())))
        }
    }

    fn show(value: &Option<String>) -> String {
        value.as_deref().map_or_else(String::new, quoted)
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

/// One of a few words.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every choice with its word.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for this choice.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, choice)| *choice == self);
        found.map_or("", |(word, _)| word)
    }
}

fn words<T: Choice>() -> impl Iterator<Item = &'static str> {
    T::WORDS.iter().map(|(word, _)| *word)
}

/// One of the words of a [`Choice`].
pub(crate) struct OneOf<T>(T);

impl<T: Choice> Kind for OneOf<T> {
    type Value = T;

    fn describe() -> String {
        words::<T>().map(quoted).collect::<Vec<_>>().join(" or ")
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<T, Fault> {
        let text = string(value, &Self::describe())?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| Fault {
            hint: did_you_mean(text, words::<T>()),
            ..Fault::new(value, format!("must be {}, not {text:?}", Self::describe()))
        })
    }

    fn show(value: &T) -> String {
        quoted(value.word())
    }
}

/// A list of words of a [`Choice`], in order of preference.
pub(crate) struct SomeOf<T>(T);

impl<T: Choice> Kind for SomeOf<T> {
    type Value = Vec<T>;

    fn describe() -> String {
        format!("a list of {}", OneOf::<T>::describe())
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<T>, Fault> {
        list(value, &Self::describe(), OneOf::read)
    }

    fn show(value: &Vec<T>) -> String {
        quoted_list(value.iter().map(|choice| choice.word()))
    }
}

/// A line of text for people, or nothing.
pub(crate) struct Line;

impl Kind for Line {
    type Value = Option<String>;

    fn describe() -> String {
        "a string".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<String>, Fault> {
        string(value, &Self::describe()).map(|text| Some(text.to_owned()))
    }

    fn show(value: &Option<String>) -> String {
        value.as_deref().map_or_else(String::new, quoted)
    }
}

/// What an agent's name must look like, said as a hint.
pub(crate) const NAME_RULE: &str =
    "a name is made of lower-case letters, digits and `-`, and begins with a letter";

/// Returns whether `name` can be the name of an agent: `[a-z][a-z0-9-]*`.
pub(crate) fn valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed)
}

/// What to log: a level, or a filter of the `tracing` library.
pub(crate) struct LogFilter;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Kind for LogFilter {
    type Value = String;

    fn describe() -> String {
        "\"error\", \"warn\", \"info\", \"debug\", \"trace\", or a filter like \"info,acpd=debug\""
            .to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
        let text = string(value, &Self::describe())?;
        // A single word that is no level would be taken for the name of a module.
        let is_filter = text.contains(['=', ',', ':']);
        let valid = text.parse::<tracing_subscriber::filter::Targets>().is_ok();
        if LEVELS.contains(&text) || (is_filter && valid) {
            return Ok(text.to_owned());
        }
        Err(Fault {
            hint: did_you_mean(text, LEVELS),
            ..Fault::new(value, format!("must be {}", Self::describe()))
        })
    }

    fn show(value: &String) -> String {
        quoted(value)
    }
}

/// A program, alone or with its arguments.
pub(crate) struct Command;

impl Kind for Command {
    type Value = Vec<String>;

    fn describe() -> String {
        "a program, or a list of a program and its arguments".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        let command = match value.get_ref() {
            DeValue::String(program) => vec![program.to_string()],
            _ => list(value, &Self::describe(), argument)?,
        };
        match command.first() {
            Some(program) if !program.is_empty() => Ok(command),
            _ => Err(Fault::new(value, "names no program")),
        }
    }

    fn show(value: &Vec<String>) -> String {
        match value.as_slice() {
            [] => String::new(),
            [program] => quoted(program),
            _ => Arguments::show(value),
        }
    }
}

/// A program with its arguments, or a line for a shell.
pub(crate) struct CommandLine;

/// How a line for a shell is run.
const SHELL: [&str; 2] = ["sh", "-c"];

impl Kind for CommandLine {
    type Value = Vec<String>;

    fn describe() -> String {
        "a line for `sh`, or a list of a program and its arguments".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        let command = Command::read(value).map_err(|fault| match value.get_ref() {
            DeValue::String(_) | DeValue::Array(_) => fault,
            _ => Fault::wrong_type(value, &Self::describe()),
        })?;
        match (value.get_ref(), command.as_slice()) {
            (DeValue::String(_), [line]) if line.contains('\0') => {
                Err(Fault::new(value, "cannot hold a NUL character"))
            }
            (DeValue::String(_), [line]) => {
                Ok(SHELL.into_iter().chain([line.as_str()]).map(str::to_owned).collect())
            }
            _ => Ok(command),
        }
    }

    fn show(value: &Vec<String>) -> String {
        match value.as_slice() {
            [] => String::new(),
            _ => Arguments::show(value),
        }
    }
}

/// A list of strings.
pub(crate) struct Arguments;

fn argument(value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
    let text = string(value, "a list of strings")?;
    if text.contains('\0') {
        return Err(Fault::new(value, "cannot hold a NUL character"));
    }
    Ok(text.to_owned())
}

impl Kind for Arguments {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of strings".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), argument)
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }
}

/// An absolute directory, or one in the home directory, which is also what `None` stands for.
pub(crate) struct Directory;

impl Kind for Directory {
    type Value = Option<PathBuf>;

    fn describe() -> String {
        "an absolute path, or one that begins with \"~/\"".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Fault> {
        let text = string(value, &Self::describe())?;
        if text == "~" {
            return Ok(None);
        }
        let path = match text.strip_prefix("~/") {
            Some(rest) => std::env::home_dir()
                .ok_or_else(|| Fault::new(value, "needs a home directory, and there is none"))?
                .join(rest),
            None => PathBuf::from(text),
        };
        if path.is_absolute() {
            Ok(Some(path))
        } else {
            let reason = format!("must be {}", Self::describe());
            Err(Fault::new(value, reason))
        }
    }

    fn show(value: &Option<PathBuf>) -> String {
        let path = value.as_ref().map(|path| path.to_string_lossy());
        quoted(path.as_deref().unwrap_or("~"))
    }
}

/// Environment variables with their values. Each inner table adds to the outer ones.
pub(crate) struct Environment;

impl Kind for Environment {
    type Value = Variables;

    fn describe() -> String {
        "a table of strings".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Variables, Fault> {
        all(table(value, &Self::describe())?.iter().map(variable)).map(Variables)
    }

    fn show(value: &Variables) -> String {
        let pairs = value.iter();
        let pairs: Vec<_> =
            pairs.map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
        format!("{{{}}}", pairs.join(", "))
    }

    fn merge(slot: &mut Variables, new: Variables) {
        slot.0.extend(new.0);
    }
}

type Entry<'t, 'i> = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>);

/// A variable and its value, which stays out of all messages: it may be a secret.
fn variable((name, value): Entry<'_, '_>) -> Result<(String, String), Fault> {
    let name = name.get_ref();
    if name.is_empty() || name.contains(['=', '\0']) {
        let reason = format!("holds {name:?}, which cannot be the name of a variable");
        return Err(Fault::new(value, reason));
    }
    let text = string(value, "a table of strings").map_err(|fault| Fault {
        reason: format!("{} (the value of `{name}`)", fault.reason),
        ..fault.hint(format!("put the value of `{name}` in quotes"))
    })?;
    if text.contains('\0') {
        let reason = format!("cannot hold a NUL character (the value of `{name}`)");
        return Err(Fault::new(value, reason));
    }
    Ok((name.to_string(), text.to_owned()))
}

/// Names of keys by what they do, at a place or everywhere.
pub(crate) struct KeyNames;

impl Kind for KeyNames {
    type Value = BTreeMap<String, String>;

    fn describe() -> String {
        "a table of strings, or of tables of strings".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self::Value, Fault> {
        let place = |(name, value): Entry<'_, '_>| -> Result<Vec<_>, Fault> {
            if let DeValue::String(key) = value.get_ref() {
                return Ok(vec![key_name(name, name.get_ref().to_string(), key)?]);
            }
            all(table(value, &Self::describe())?.iter().map(|(action, key)| {
                let full = format!("{}.{}", name.get_ref(), action.get_ref());
                key_name(action, full, string(key, "a string")?)
            }))
        };
        let keys: Vec<Vec<_>> = all(table(value, &Self::describe())?.iter().map(place))?;
        Ok(keys.into_iter().flatten().collect())
    }

    fn show(value: &Self::Value) -> String {
        let pairs = value.iter();
        let pairs: Vec<_> =
            pairs.map(|(name, key)| format!("{} = {}", name, quoted(key))).collect();
        format!("{{{}}}", pairs.join(", "))
    }
}

/// What a key does by its full name, if there is such a thing, and the key.
fn key_name(
    at: &Spanned<DeString<'_>>,
    name: String,
    key: &str,
) -> Result<(String, String), Fault> {
    if is_key_name(&name) {
        return Ok((name, key.to_owned()));
    }
    let reason = format!("has no `{name}`: nothing that a key does is called so");
    Err(Fault { span: at.span(), reason, hint: Some(key_name_hint(&name)), more: Vec::new() })
}

/// What may have been meant by the name of a key.
fn key_name_hint(name: &str) -> String {
    let has_place = name.contains('.');
    let known = KEY_NAMES.iter().flat_map(|(place, actions)| {
        let place = if has_place { format!("{place}.") } else { String::new() };
        actions.iter().map(move |action| format!("{place}{action}"))
    });
    let known: Vec<String> = known.collect();
    did_you_mean(name, known.iter().map(String::as_str))
        .unwrap_or_else(|| "docs/terminal.md has the names".to_owned())
}

/// Names of environment variables, or beginnings of names followed by `*`. Each inner table adds
/// to the outer ones.
pub(crate) struct Names;

impl Kind for Names {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of names, or of beginnings of names like \"AWS_*\"".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| {
            let text = string(item, &Self::describe())?;
            let name = text.strip_suffix('*').unwrap_or(text);
            if text.is_empty() || name.contains(['*', '=', '\0']) {
                let reason = format!("holds {text:?}, which is not a name");
                return Err(Fault::new(item, reason).hint("a `*` may stand at the end only"));
            }
            Ok(text.to_owned())
        })
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }

    fn merge(slot: &mut Vec<String>, new: Vec<String>) {
        for name in new {
            if !slot.contains(&name) {
                slot.push(name);
            }
        }
    }
}

/// Names of members, each in the one before it.
pub(crate) struct Members;

impl Kind for Members {
    type Value = Vec<String>;

    fn describe() -> String {
        "a list of names like \"auth.gateway\"".to_owned()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
        list(value, &Self::describe(), |item| {
            let text = string(item, &Self::describe())?;
            if text.split('.').any(|name| name.trim().is_empty()) {
                return Err(Fault::new(item, format!("holds {text:?}, which is not a name")));
            }
            // What is said to acpd is no business of an agent.
            if text.split('.').any(|name| name == NAMESPACE) {
                return Err(Fault::new(item, format!("holds {text:?}, which is acpd's own")));
            }
            Ok(text.to_owned())
        })
    }

    fn show(value: &Vec<String>) -> String {
        quoted_list(value.iter().map(String::as_str))
    }
}
