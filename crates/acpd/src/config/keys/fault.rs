//! What can be wrong with a value, and how values are looked into.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a value, to go after the name of its key.
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
    /// What is wrong with other parts of it.
    pub(crate) more: Vec<Fault>,
}

impl Fault {
    pub(crate) fn new(value: &Spanned<DeValue<'_>>, reason: impl Into<String>) -> Self {
        Self { span: value.span(), reason: reason.into(), hint: None, more: Vec::new() }
    }

    /// The value has another type than `wanted`.
    pub(crate) fn wrong_type(value: &Spanned<DeValue<'_>>, wanted: &str) -> Self {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        Self::new(value, format!("must be {wanted}, not {found}"))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What all parts of a value say, or what is wrong with each of those that say nothing.
pub(crate) fn all<T, C: FromIterator<T>>(
    parts: impl IntoIterator<Item = Result<T, Fault>>,
) -> Result<C, Fault> {
    let mut faults = Vec::new();
    let good = parts.into_iter().filter_map(|part| part.map_err(|fault| faults.push(fault)).ok());
    let good = good.collect();
    let mut faults = faults.into_iter();
    match faults.next() {
        Some(first) => Err(Fault { more: faults.collect(), ..first }),
        None => Ok(good),
    }
}

pub(crate) fn string<'v>(value: &'v Spanned<DeValue<'_>>, wanted: &str) -> Result<&'v str, Fault> {
    let text = value.get_ref().as_str();
    text.ok_or_else(|| Fault::wrong_type(value, wanted))
}

pub(crate) fn table<'v, 'i>(
    value: &'v Spanned<DeValue<'i>>,
    wanted: &str,
) -> Result<&'v DeTable<'i>, Fault> {
    value.get_ref().as_table().ok_or_else(|| Fault::wrong_type(value, wanted))
}

pub(crate) fn list<T>(
    value: &Spanned<DeValue<'_>>,
    wanted: &str,
    each: impl Fn(&Spanned<DeValue<'_>>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    match value.get_ref() {
        DeValue::Array(items) => all(items.iter().map(each)),
        _ => Err(Fault::wrong_type(value, wanted)),
    }
}
