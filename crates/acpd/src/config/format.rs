//! Formats of values: durations, sizes, names, commands, tables of variables.
//!
//! serde and schemars know booleans, texts and plain lists. For other values the field names a
//! format:
//!
//! ```text
//!  #[serde(with = "As::<Timeout>")]      serde:    "1m" ─▶ 60 s, or "must be a duration like …"
//!  pub start_timeout: Duration           schemars: a pattern, and as title "a duration like …"
//! ```

use std::any::type_name;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use acpd_api::{Amount, Cost, LogLevel, NAMESPACE};
use acpd_core::profile::FailureSign;
use acpd_policy::Workspaces;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{
    Error as PlainError, MapAccessDeserializer, MapDeserializer, StrDeserializer,
};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::ser::{Error as _, Serializer};
use serde_json::{Value as Json, json};

use crate::log;

/// A way to write a value. A value that it does not read has the wrong type.
pub(super) trait Format: Sized {
    type Value;

    /// Returns the text after "must be". A hint may follow on a second line.
    fn wanted() -> String;

    fn plural() -> String {
        let wanted = Self::wanted();
        let Some(one) = wanted.strip_prefix("a ") else { return wanted };
        let (noun, rest) = one.split_at(one.find([' ', '\n']).unwrap_or(one.len()));
        format!("{noun}s{rest}")
    }

    fn schema() -> Json;

    fn text<E: Error>(text: &str) -> Result<Self::Value, E> {
        Err(E::invalid_type(Unexpected::Str(text), &As::<Self>(PhantomData)))
    }

    fn number<E: Error>(_: i128) -> Result<Self::Value, E> {
        Err(E::invalid_type(Unexpected::Other("a number"), &As::<Self>(PhantomData)))
    }

    fn list<'de, A: SeqAccess<'de>>(_: A) -> Result<Self::Value, A::Error> {
        Err(Error::invalid_type(Unexpected::Seq, &As::<Self>(PhantomData)))
    }

    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self::Value, A::Error> {
        Err(Error::invalid_type(Unexpected::Map, &As::<Self>(PhantomData)))
    }
}

/// Uses a [`Format`]: `#[serde(with = "As::<F>")]`.
pub(super) struct As<F>(PhantomData<F>);

impl<F: Format> As<F> {
    /// Reads a value, for a field in which it may be optional.
    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: From<F::Value>>(
        from: D,
    ) -> Result<T, D::Error> {
        from.deserialize_any(As::<F>(PhantomData)).map(T::from)
    }

    /// Always fails: schemars asks for defaults, which are in `defaults.toml`.
    pub(super) fn serialize<T, S: Serializer>(_: &T, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("values are not written"))
    }

    /// Returns the error for a value of the right type without a meaning.
    fn invalid<E: Error>(value: Unexpected<'_>) -> E {
        E::invalid_value(value, &As::<F>(PhantomData))
    }
}

impl<F: Format> JsonSchema for As<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        type_name::<F>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = F::schema();
        if schema.get("properties").is_none() {
            schema["title"] = F::wanted().lines().next().into();
        }
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// Returns the JSON schema of a type, with all others in it. Defaults of types are left out,
/// because they are not those of the configuration.
pub(super) fn schema_of<T: JsonSchema>() -> Json {
    let tidy = |schema: &mut Schema| {
        schema.remove("default");
        // TOML has no null: an optional value has one type.
        if let Some(first) = schema.get("type").and_then(|types| types.get(0)).cloned() {
            schema.insert("type".to_owned(), first);
        }
        if let Some(Json::Array(forms)) = schema.get_mut("anyOf") {
            forms.retain(|form| form["type"] != "null");
        }
        if let Some(Json::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    };
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings.with_transform(RecursiveTransform(tidy)).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

impl<'de, F: Format> DeserializeSeed<'de> for As<F> {
    type Value = F::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<F::Value, D::Error> {
        As::<F>::deserialize(from)
    }
}

impl<'de, F: Format> Visitor<'de> for As<F> {
    type Value = F::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&F::wanted())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<F::Value, E> {
        F::text(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<F::Value, E> {
        F::number(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<F::Value, E> {
        F::number(number.into())
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<F::Value, E> {
        F::number(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<F::Value, A::Error> {
        F::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<F::Value, A::Error> {
        F::table(entries)
    }
}

pub(super) struct Each<F>(F);

impl<F: Format> Format for Each<F> {
    type Value = Vec<F::Value>;

    fn wanted() -> String {
        format!("a list of {}", F::plural())
    }

    fn schema() -> Json {
        json!({"type": "array", "items": F::schema()})
    }

    fn list<'de, A: SeqAccess<'de>>(mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(As::<F>(PhantomData))? {
            list.push(item);
        }
        Ok(list)
    }
}

/// A table of values by names of the format `N`.
pub(super) struct Table<N, F>(N, F);

impl<N: Format<Value = String>, F: Format> Format for Table<N, F> {
    type Value = BTreeMap<String, F::Value>;

    fn wanted() -> String {
        match F::plural().as_str() {
            "tables" => "a table".to_owned(),
            values => format!("a table of {values}"),
        }
    }

    fn schema() -> Json {
        json!({"type": "object", "propertyNames": N::schema(), "additionalProperties": F::schema()})
    }

    fn table<'de, A: MapAccess<'de>>(mut entries: A) -> Result<Self::Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some(name) = entries.next_key_seed(As::<N>(PhantomData))? {
            // The toml crate represents a date as a table.
            if name.starts_with("$__toml_private") {
                return Err(Error::invalid_type(
                    Unexpected::Other("a date"),
                    &As::<Self>(PhantomData),
                ));
            }
            table.insert(name, entries.next_value_seed(As::<F>(PhantomData))?);
        }
        Ok(table)
    }
}

/// A table that serde reads into a struct. serde itself would also read a list.
pub(super) struct Record<T>(T);

impl<T: DeserializeOwned + JsonSchema> Format for Record<T> {
    type Value = T;

    fn wanted() -> String {
        "a table".to_owned()
    }

    fn schema() -> Json {
        schema_of::<T>()
    }

    fn table<'de, A: MapAccess<'de>>(entries: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries))
    }
}

/// One of a few words: the names of the variants of `T`.
pub(super) struct OneOf<T>(T);

impl<T: DeserializeOwned> OneOf<T> {
    fn words() -> Vec<String> {
        let unknown = T::deserialize(StrDeserializer::<PlainError>::new(""));
        unknown.err().map(|error| listed(&error.to_string())).unwrap_or_default()
    }
}

impl<T: DeserializeOwned> Format for OneOf<T> {
    type Value = T;

    fn wanted() -> String {
        one_of(&Self::words())
    }

    fn schema() -> Json {
        json!({"enum": Self::words()})
    }

    fn text<E: Error>(text: &str) -> Result<T, E> {
        T::deserialize(StrDeserializer::new(text))
    }
}

/// Returns the words that serde's error lists as expected.
pub(super) fn listed(error: &str) -> Vec<String> {
    let (_, words) = error.rsplit_once(", expected ").unwrap_or_default();
    words.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

pub(super) fn one_of(words: &[String]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or ")
}

/// Returns the keys of a table, from serde's error about an unknown one.
pub(super) fn fields<T: DeserializeOwned>() -> Vec<String> {
    let unknown = T::deserialize(MapDeserializer::<_, PlainError>::new(once(("", ""))));
    unknown.err().map(|error| listed(&error.to_string())).unwrap_or_default()
}

/// A whole number of at least `LEAST` that fits into `T`.
pub(super) struct Whole<T, const LEAST: u32>(T);

impl<T, const LEAST: u32> Whole<T, LEAST> {
    const MOST: u64 = u64::MAX >> (64 - 8 * size_of::<T>());
}

impl<T: TryFrom<i128>, const LEAST: u32> Format for Whole<T, LEAST> {
    type Value = T;

    fn wanted() -> String {
        match Self::MOST {
            most if most < u32::MAX.into() => format!("a whole number from {LEAST} to {most}"),
            _ => format!("a whole number from {LEAST}"),
        }
    }

    fn schema() -> Json {
        json!({"type": "integer", "minimum": LEAST, "maximum": Self::MOST})
    }

    fn number<E: Error>(number: i128) -> Result<T, E> {
        let fitting = Some(number).filter(|number| *number >= LEAST.into());
        let fitting = fitting.and_then(|number| T::try_from(number).ok());
        fitting.ok_or_else(|| As::<Self>::invalid(Unexpected::Other("a number")))
    }
}

/// Longest line that can be configured, in bytes: shims keep twice that of an agent's output.
pub const LONGEST_LINE: u64 = 128 << 20;

/// Least size in bytes: a smaller one lacks its unit.
const LEAST_SIZE: u64 = 4096;

const SIZE_UNITS: [(&str, u64); 4] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

pub(super) struct Size<const MOST: u64 = { i64::MAX as u64 }>;

impl<const MOST: u64> Format for Size<MOST> {
    type Value = u64;

    fn wanted() -> String {
        "a size like \"64MiB\", or a number of bytes\nthe units are B, KiB, MiB and GiB".to_owned()
    }

    fn schema() -> Json {
        let number = json!({"type": "integer", "minimum": LEAST_SIZE, "maximum": MOST});
        json!({"anyOf": [number, with_units("[0-9]+", &SIZE_UNITS)]})
    }

    fn text<E: Error>(text: &str) -> Result<u64, E> {
        let size = count(text, &SIZE_UNITS);
        Self::number(size.ok_or_else(|| As::<Self>::invalid(Unexpected::Str(text)))?.into())
    }

    fn number<E: Error>(size: i128) -> Result<u64, E> {
        match i64::try_from(size).ok().and_then(|size| u64::try_from(size).ok()) {
            None => Err(As::<Self>::invalid(Unexpected::Other("a number"))),
            Some(size) if size < LEAST_SIZE => Err(E::custom(format!(
                "is too small at {size} bytes\nthe least is \"4KiB\"; the units are B, KiB, MiB and GiB"
            ))),
            Some(size) if size > MOST => Err(E::custom(format!(
                "is too large at {size} bytes\nthe most is \"{}MiB\"",
                MOST >> 20
            ))),
            Some(size) => Ok(size),
        }
    }
}

fn count(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn with_units(number: &str, units: &[(&str, u64)]) -> Json {
    let units: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
    pattern(&format!("^{number}({})$", units.join("|")))
}

pub(super) fn pattern(pattern: &str) -> Json {
    json!({"type": "string", "pattern": pattern})
}

/// A parsed value, or a reason. Without a reason the value is not of the wanted form.
type Read<T> = Result<T, Option<&'static str>>;

/// Declares formats of texts: the type, the text after "must be", the schema, and the reader.
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident: $value:ty, $wanted:expr, $schema:expr, $read:expr;)*) => {$(
        $(#[$about])*
        pub(super) struct $name;

        impl Format for $name {
            type Value = $value;

            fn wanted() -> String {
                $wanted.to_owned()
            }

            fn schema() -> Json {
                $schema
            }

            fn text<E: Error>(text: &str) -> Result<$value, E> {
                let read: fn(&str) -> Read<$value> = $read;
                read(text).map_err(|why| match why {
                    Some(why) => E::custom(why),
                    None => As::<Self>::invalid(Unexpected::Str(text)),
                })
            }
        }
    )*};
}

const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Longest duration: sums of times and durations must not overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

const UNITS_HINT: &str = "the units are ms, s, m, h and d, as in \"250ms\" or \"30m\"";

fn duration(text: &str) -> Read<Duration> {
    let duration = count(text, &TIME_UNITS).map(Duration::from_millis).ok_or(None)?;
    if duration <= LONGEST { Ok(duration) } else { Err(Some("is longer than a year")) }
}

fn directory(text: &str) -> Read<Option<PathBuf>> {
    let path = match text.strip_prefix('~').map(|rest| (rest, rest.strip_prefix('/'))) {
        Some(("", _)) => return Ok(None),
        // Without a home directory (a container with a bare user id), agents get `/`, too.
        Some((_, Some(rest))) => std::env::home_dir().unwrap_or_else(|| "/".into()).join(rest),
        _ => PathBuf::from(text),
    };
    if path.is_absolute() { Ok(Some(path)) } else { Err(None) }
}

fn word(text: &str) -> Read<String> {
    if text.contains('\0') { Err(Some("cannot hold a NUL character")) } else { Ok(text.to_owned()) }
}

fn choice(text: &str, yes: &str, no: &str) -> Read<bool> {
    if text == yes || text == no { Ok(text == yes) } else { Err(None) }
}

fn valid(text: &str, is_valid: bool) -> Read<String> {
    if is_valid { Ok(text.to_owned()) } else { Err(None) }
}

texts! {
    Time: Duration, format!("a duration like \"3s\"\n{UNITS_HINT}"), with_units("[0-9]+", &TIME_UNITS), duration;

    Timeout: Duration, format!("a duration like \"30s\"\n{UNITS_HINT}"),
        with_units("0*[1-9][0-9]*", &TIME_UNITS), |text| match duration(text)? {
            Duration::ZERO => Err(Some("must be more than zero")),
            duration => Ok(duration),
        };

    TimeOrNever: Option<Duration>, format!("a duration like \"30m\", or \"0\" for never\n{UNITS_HINT}"),
        json!({"anyOf": [{"const": "0"}, Time::schema()]}), |text| {
            let duration = if text == "0" { Duration::ZERO } else { duration(text)? };
            Ok(Some(duration).filter(|duration| !duration.is_zero()))
        };

    Money: Cost, "an amount and its currency, like \"5 USD\"", pattern("^[^ ]+ [A-Z]{3}$"), |text| {
        let cost = text.split_once(' ').and_then(|(units, currency)| {
            let amount = Amount::from_units(units.parse().ok()?)?;
            let is_code = currency.len() == 3 && currency.bytes().all(|b| b.is_ascii_uppercase());
            // An allowance adds the same amount again, which must not be nothing.
            let is_some = amount > Amount::default();
            (is_code && is_some).then(|| Cost { amount, currency: currency.into() })
        });
        cost.ok_or(None)
    };

    /// An absolute directory, or one in the home directory; `None` is the home directory itself.
    Directory: Option<PathBuf>, "an absolute path, or one that begins with \"~/\"", pattern("^(~$|~/|/)"), directory;

    /// A [`Directory`] in a list.
    SharedPath: Option<PathBuf>, "a path like \"/srv/code\" or \"~/code\"", Directory::schema(), directory;

    File: PathBuf, Directory::wanted(), pattern("^(~/|/)"),
        |text| directory(text)?.ok_or(Some("names no file"));

    /// Start of an agent after an end that the user did not ask for.
    OnFailure: bool, "\"on-failure\" or \"never\"", json!({"enum": ["on-failure", "never"]}),
        |text| choice(text, "on-failure", "never");

    /// Failure of a turn without a word of the agent.
    Failed: bool, "\"ended\" or \"failed\"", json!({"enum": ["ended", "failed"]}),
        |text| choice(text, "failed", "ended");

    /// A text without NUL, as programs take it.
    Word: String, "a string", pattern("^[^\\x00]*$"), word;

    CommandText: String, "a command", pattern("^[^\\x00]*[^\\x00\\s][^\\x00]*$"), |text| {
        if text.trim().is_empty() { Err(Some("is an empty command")) } else { word(text) }
    };

    Address: String, "an address like \"127.0.0.1:4000\"", pattern("^[\\s\\S]+:[+]?[0-9]+$"), |text| {
        let (host, port) = text.rsplit_once(':').ok_or(None)?;
        valid(text, !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
    };

    WebAddress: String, "an address like \"https://example.com/mcp\"", pattern("^https?://[!-~]+$"), |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_word = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic());
        valid(text, rest.is_some_and(is_word))
    };

    LogFilter: String,
        "\"error\", \"warn\", \"info\", \"debug\", \"trace\", or a filter like \"info,acpd=debug\"",
        pattern(&format!("^({})$|[=,:]", LogLevel::LEVELS.join("|"))),
        |text| valid(text, log::filter(text).is_some());

    /// A part of an error's message or data, or its code.
    ErrorText: String, "a text like \"401\"", pattern("\\S"), |text| match text.trim() {
        "" => Err(Some("is empty, and every error has that in it")),
        text => Ok(text.to_owned()),
    };

    FailureText: FailureSign, "a text like \"content.text=Error: \"", pattern("^[^=.]+(\\.[^=.]+)*=."),
        |text| FailureSign::parse(text).ok_or(None);

    /// Names of nested members, the outermost first. `_acpd` members do not concern an agent.
    Member: String, "a name like \"auth.gateway\"", pattern("^[^.]*[^.\\s][^.]*([.][^.]*[^.\\s][^.]*)*$"), |text| {
        if text.split('.').any(|name| name == NAMESPACE) {
            return Err(Some("cannot hold `_acpd`, which is acpd's own"));
        }
        valid(text, text.split('.').all(|name| !name.trim().is_empty()))
    };

    /// The name of a variable, or the beginning of names.
    VariablePattern: String, "a name like \"AWS_PROFILE\" or \"AWS_*\"\na `*` may stand at the end only",
        pattern("^([^*=\\x00]+[*]?|[*])$"), |text| {
            let name = text.strip_suffix('*').unwrap_or(text);
            valid(text, !text.is_empty() && !name.contains(['*', '=', '\0']))
        };

    VariableName: String, "the name of a variable", pattern("^[^=\\x00]+$"),
        |text| valid(text, !text.is_empty() && !text.contains(['=', '\0']));

    HeaderName: String, "the name of a header", pattern("^[!-9;-~]+$"),
        |text| valid(text, !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != ':'));

    SourceName: String, "a name", pattern("^[^=/\\x00]+$"),
        |text| valid(text, !matches!(text, "" | "." | "..") && !text.contains(['=', '/', '\0']));
}

/// A program, alone or with arguments. With `SHELL` a text is a line for a shell.
pub(super) struct Command<const SHELL: bool = false>;

impl<const SHELL: bool> Format for Command<SHELL> {
    type Value = Vec<String>;

    fn wanted() -> String {
        let text = if SHELL { "a line for `sh`" } else { "a program" };
        format!("{text}, or a list of a program and its arguments")
    }

    fn schema() -> Json {
        let program = json!({"type": "string", "minLength": 1, "pattern": "^[^\\x00]*$"});
        json!({"anyOf": [
            program,
            {"type": "array", "items": [program], "additionalItems": Word::schema(), "minItems": 1}
        ]})
    }

    fn text<E: Error>(text: &str) -> Result<Vec<String>, E> {
        match Word::text(text)? {
            text if text.is_empty() => Err(E::custom("names no program")),
            line if SHELL => Ok(vec!["sh".to_owned(), "-c".to_owned(), line]),
            program => Ok(vec![program]),
        }
    }

    fn list<'de, A: SeqAccess<'de>>(items: A) -> Result<Vec<String>, A::Error> {
        let command = Each::<Word>::list(items)?;
        match command.first() {
            Some(program) if !program.is_empty() => Ok(command),
            _ => Err(A::Error::custom("names no program")),
        }
    }
}

pub(super) struct Folders;

impl Format for Folders {
    type Value = Workspaces;

    fn wanted() -> String {
        "a glob of directories, or a list of them".to_owned()
    }

    fn schema() -> Json {
        let glob = json!({"type": "string"});
        json!({"anyOf": [glob, {"type": "array", "items": glob, "minItems": 1}]})
    }

    fn text<E: Error>(glob: &str) -> Result<Workspaces, E> {
        globs(&[glob.to_owned()])
    }

    fn list<'de, A: SeqAccess<'de>>(items: A) -> Result<Workspaces, A::Error> {
        globs(&some(Each::<Word>::list(items)?, "leave it out for all directories")?)
    }
}

fn some<E: Error>(list: Vec<String>, hint: &str) -> Result<Vec<String>, E> {
    let empty = || E::custom(format!("is an empty list\n{hint}"));
    if list.is_empty() { Err(empty()) } else { Ok(list) }
}

fn globs<E: Error>(globs: &[String]) -> Result<Workspaces, E> {
    let home = std::env::var("HOME").ok();
    Workspaces::new(globs, home.as_deref()).map_err(|bad| {
        E::custom(format!("cannot be used: {bad}\n{}", bad.hint.unwrap_or_default()))
    })
}

/// Names of agents, which are checked when the whole file is read.
pub(super) struct AgentNames;

impl Format for AgentNames {
    type Value = Vec<String>;

    fn wanted() -> String {
        "a list of agents".to_owned()
    }

    fn schema() -> Json {
        json!({"type": "array", "items": {"type": "string"}, "minItems": 1})
    }

    fn list<'de, A: SeqAccess<'de>>(items: A) -> Result<Vec<String>, A::Error> {
        let hint = "leave it out for all agents, or set `enabled = false` for none";
        some(Each::<Word>::list(items)?, hint)
    }
}
