//! Finding a value inside a line without parsing it.

use std::borrow::Cow;
use std::ops::Range;

use crate::scan::json::{self, Lookup};

/// The byte range of the value at `path`, a path of object members; the empty path is the whole
/// value.
///
/// `json` must be valid JSON, as after [`parse`](crate::parse). The scan stops at the value. If an
/// object repeats a member, the first one counts.
pub fn locate(json: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let start = json::skip_space(json, 0);
    let Some((last, parents)) = path.split_last() else {
        return json::value(json, start);
    };
    let mut at = start;
    for key in parents {
        at = json::enter(json, at, key)?;
    }
    match json::member(json, at, last)? {
        Lookup::Found(member) => Some(member.value),
        Lookup::Missing { .. } => None,
    }
}

/// The string at `path`, decoded. `None` if there is none, or if it cannot be decoded (a lone
/// surrogate).
pub fn str_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    let raw = &json[locate(json, path)?];
    json::decode(std::str::from_utf8(raw).ok()?)
}
