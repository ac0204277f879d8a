//! Edits of objects and lists that the conversions share. Names and values stay as written.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::scan::json::{self, Members};
use crate::{locate, set_member};

/// The value at a path; `null` counts as absent.
pub(super) fn value_at(json: &Bytes, path: &[&str]) -> Option<Bytes> {
    locate(json, path).map(|range| json.slice(range)).filter(|value| !is_null(value))
}

pub(super) fn object_at(json: &Bytes, path: &[&str]) -> Option<Bytes> {
    value_at(json, path).filter(|value| value.starts_with(b"{"))
}

/// The items of the list at a path. `None`: there is no list.
pub(super) fn items_at(json: &Bytes, path: &[&str]) -> Option<Vec<Bytes>> {
    let list = value_at(json, path)?;
    let items: Vec<&RawValue> = serde_json::from_slice(&list).ok()?;
    Some(items.into_iter().map(|item| list.slice_ref(item.get().as_bytes())).collect())
}

/// The members of an object: names with their quotes, and values. Other values have none.
pub(super) fn members(object: &Bytes) -> impl Iterator<Item = (Bytes, Bytes)> {
    let members = Members::of(object, json::skip_space(object, 0)).into_iter().flatten();
    members.map_while(|(name, start)| {
        Some((object.slice(name), object.slice(json::value(object, start)?)))
    })
}

pub(super) fn object_of(members: impl IntoIterator<Item = (Bytes, Bytes)>) -> Bytes {
    let members = members.into_iter().map(|(name, value)| [&name[..], b":", &value].concat());
    enclosed(b"{", members, b"}")
}

pub(super) fn list_of(items: impl IntoIterator<Item = Bytes>) -> Bytes {
    enclosed(b"[", items, b"]")
}

fn enclosed<T: AsRef<[u8]>>(
    open: &[u8],
    parts: impl IntoIterator<Item = T>,
    close: &[u8],
) -> Bytes {
    let mut text = open.to_vec();
    for part in parts {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(part.as_ref());
    }
    text.extend_from_slice(close);
    text.into()
}

/// Converts the items of the list at a path; those without a result are left out. Anything else
/// than a list stays.
pub(super) fn convert_items(
    json: &Bytes,
    path: &[&str],
    convert: impl Fn(&Bytes) -> Option<Bytes>,
) -> Bytes {
    let Some(items) = items_at(json, path) else { return json.clone() };
    set_member(json, path, &list_of(items.iter().filter_map(convert)))
}

/// Sets the member at a path if it is absent or `null`.
pub(super) fn with_default(json: &Bytes, path: &[&str], value: &str) -> Bytes {
    match value_at(json, path) {
        Some(_) => json.clone(),
        None => set_member(json, path, value.as_bytes()),
    }
}

/// Renames a member of an object; an older member of the new name is dropped.
pub(super) fn rename(object: &Bytes, from: &str, to: &str) -> Bytes {
    if locate(object, &[from]).is_none() {
        return object.clone();
    }
    let left = members(object).filter(|(name, _)| !json::is_key(name, to));
    object_of(left.map(|(name, value)| {
        (if json::is_key(&name, from) { quoted(to).into() } else { name }, value)
    }))
}

pub(super) fn is_null(value: &[u8]) -> bool {
    value == b"null"
}

/// The text as a string of JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text serializes")
}
