//! Finding a value inside a line without parsing it.

use std::borrow::Cow;
use std::ops::Range;

use crate::legible::decode_lossy;
use crate::scan::json;

/// The byte range of the value at `path`, a path of object members; the empty path is the whole
/// value.
///
/// `json` must be valid JSON, as after [`parse`](crate::parse). The scan stops at the value. Of
/// duplicate members the first one counts.
pub fn locate(json: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut at = json::skip_space(json, 0);
    for key in path {
        at = json::enter(json, at, key)?;
    }
    json::value(json, at)
}

/// The decoded string at `path`. `None` if there is none, or for a lone surrogate.
pub fn str_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    json::decode(text(&json[locate(json, path)?])?)
}

/// The string at `path` for display, with U+FFFD for each lone surrogate. `None` if there is none.
pub fn lossy_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    decode_lossy(text(&json[locate(json, path)?])?)
}

/// The whole number at `path`, from 0 up to the range of signed ones. `None` if there is none.
pub fn count_at(json: &[u8], path: &[&str]) -> Option<u64> {
    let number: i64 = text(&json[locate(json, path)?])?.parse().ok()?;
    number.try_into().ok()
}

fn text(raw: &[u8]) -> Option<&str> {
    std::str::from_utf8(raw).ok()
}
