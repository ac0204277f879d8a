//! Finding a value inside a line without parsing it.

use std::borrow::Cow;
use std::ops::Range;

use crate::legible::decode_lossy;
use crate::scan::json;

/// The member of `params` with the session of a message.
pub(crate) const SESSION: &str = "sessionId";

/// The byte range of the value at `path`, a path of object members; the empty path is the whole
/// value.
///
/// `json` must be valid JSON, as after [`parse`](crate::parse). The scan stops at the value. Of
/// duplicate members the first one counts.
pub fn locate(json: &[u8], path: &[&str]) -> Option<Range<usize>> {
    json::value(json, json::enter_path(json, path)?)
}

/// The session and the update's kind in a notification's params. The scan ends after the kind.
pub fn session_and_kind(params: &str) -> Option<(Cow<'_, str>, Option<Cow<'_, str>>)> {
    let bytes = params.as_bytes();
    let [session, update] = json::enter_each(bytes, 0, [SESSION, "update"]);
    let decoded = |at| json::decode(params.get(json::value(bytes, at)?)?);
    let kind = update.and_then(|at| json::enter(bytes, at, "sessionUpdate"));
    Some((decoded(session?)?, kind.and_then(decoded)))
}

/// The strings under these names in the object at `path`, as by [`lossy_at`], in one walk.
pub fn strs_lossy_at<'a, const N: usize>(
    json: &'a [u8],
    path: &[&str],
    names: [&str; N],
) -> [Option<Cow<'a, str>>; N] {
    let at = json::enter_path(json, path);
    let starts = at.map_or([None; N], |at| json::enter_each(json, at, names));
    starts.map(|start| decode_lossy(text(&json[json::value(json, start?)?])?))
}

/// The decoded string at `path`. `None` if there is none, or for a lone surrogate.
pub fn str_at<'a>(json: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    json::decode(text(&json[locate(json, path)?])?)
}

/// The agent's `messageId` of an update. A line without its `I`, or an escape, is not walked.
pub fn message_id(line: &[u8]) -> Option<Cow<'_, str>> {
    let may_be = |at: usize| line[..at].ends_with(b"message") || line[at..].starts_with(br"\u");
    memchr::memchr2_iter(b'I', b'\\', line).find(|at| may_be(*at))?;
    str_at(line, &["params", "update", "messageId"])
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
