//! Finding a value inside a line without parsing it.

use std::borrow::Cow;
use std::ops::Range;

use crate::legible::decode_lossy;
use crate::scan::json;

/// The byte range of the value at `path`, a path of object members; the empty path is the whole
/// value.
///
/// `json` must be valid JSON, as after [`parse`](crate::parse). The scan stops at the value. If an
/// object repeats a member, the first one counts.
pub fn locate(json: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut at = json::skip_space(json, 0);
    for key in path {
        at = json::enter(json, at, key)?;
    }
    json::value(json, at)
}

/// The byte ranges of the values that the object at `path` has under these names. The object is gone through
/// once for all of them.
pub fn locate_each<const N: usize>(
    json: &[u8],
    path: &[&str],
    names: [&str; N],
) -> [Option<Range<usize>>; N] {
    let mut at = Some(json::skip_space(json, 0));
    for key in path {
        at = at.and_then(|at| json::enter(json, at, key));
    }
    let starts = at.map_or([None; N], |at| json::enter_each(json, at, names));
    starts.map(|start| json::value(json, start?))
}

/// The strings of [`locate_each`], decoded, each as [`lossy_at`] has it.
pub fn strs_lossy_at<'a, const N: usize>(
    json: &'a [u8],
    path: &[&str],
    names: [&str; N],
) -> [Option<Cow<'a, str>>; N] {
    locate_each(json, path, names).map(|at| decode_lossy(text(&json[at?])?))
}

/// The string at `path`, decoded. `None` if there is none, or if it cannot be decoded (a lone
/// surrogate).
pub fn str_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    json::decode(text(&json[locate(json, path)?])?)
}

/// The string at `path` with U+FFFD for each lone surrogate, to be shown. `None` if there is none.
pub fn lossy_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    decode_lossy(text(&json[locate(json, path)?])?)
}

fn text(raw: &[u8]) -> Option<&str> {
    std::str::from_utf8(raw).ok()
}
