//! The kinds of values that keys have: how each is read, shown and documented.

mod number;
mod table;
mod text;

use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

pub use self::number::LONGEST_LINE;
pub(crate) use self::number::{Count, LineSize, Money, Port, Size, Time, TimeOrNever, Timeout};
pub(crate) use self::table::{Environment, Members, Names};
pub(crate) use self::text::{
    Address, Arguments, Command, CommandLine, Directory, Line, LogFilter, NAME_PATTERN, NAME_RULE,
    valid_name,
};
use crate::config::error::did_you_mean;
use crate::config::keys::fault::{Fault, list, string};
use crate::config::keys::schema::{Schema, list_of};

/// A kind of value; [`Kind::show`] and [`Kind::read`] are inverse to each other.
pub(crate) trait Kind {
    /// What the program sees of it.
    type Value;

    /// Whether what an inner table says comes beside what was said before it, and not in its place.
    const ADDS_UP: bool = false;

    /// What may be written, as in "must be …".
    fn describe() -> String;

    /// The same for editors.
    fn schema() -> Schema;

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

/// A table on one line, of values that are TOML already.
pub(crate) fn inline<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let entries = entries.into_iter().map(|(name, value)| format!("{} = {value}", quoted(name)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

fn quoted_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<_> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn describe() -> String {
        "true or false".to_owned()
    }

    fn schema() -> Schema {
        json!({"type": "boolean"})
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

/// A value, or nothing said.
pub(crate) struct Perhaps<K>(K);

impl<K: Kind> Kind for Perhaps<K> {
    type Value = Option<K::Value>;

    fn describe() -> String {
        K::describe()
    }

    fn schema() -> Schema {
        K::schema()
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self::Value, Fault> {
        K::read(value).map(Some)
    }

    fn show(value: &Self::Value) -> String {
        value.as_ref().map_or_else(String::new, K::show)
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

    fn schema() -> Schema {
        json!({"enum": words::<T>().collect::<Vec<_>>()})
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

    fn schema() -> Schema {
        list_of(&OneOf::<T>::schema())
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Vec<T>, Fault> {
        list(value, &Self::describe(), OneOf::read)
    }

    fn show(value: &Vec<T>) -> String {
        quoted_list(value.iter().map(|choice| choice.word()))
    }
}
