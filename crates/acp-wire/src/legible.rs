//! JSON that every reader takes.
//!
//! The grammar of JSON allows strings and numbers that Rust cannot hold, and any nesting. A reader
//! refuses a whole text because of one such value.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;

use crate::scan::json;

/// Levels of nesting to keep; serde_json stops at 128, and a value may be put into others.
const LEVELS: usize = 100;
/// Replaces a value that readers refuse.
const NOT_READ: &str = "\"could not be read\"";
/// U+FFFD as an escape.
const REPLACEMENT: &str = "\\ufffd";
/// Digits up to which a number is in range without a check.
const DIGITS: usize = 300;

/// Returns the JSON for display: `\ufffd` for each lone surrogate, and the text `could not be read`
/// for values that are nested too deeply and numbers out of range. All other values stay.
///
/// `json` must be valid JSON, as after [`parse`](crate::parse). Ids and values that are compared or
/// sent on must be read from the original: different texts may become the same here.
pub fn legible(json: &str) -> Cow<'_, str> {
    let edits = edits(json);
    if edits.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut upto = 0;
    for (range, instead) in edits {
        text.push_str(&json[upto..range.start]);
        text.push_str(instead);
        upto = range.end;
    }
    text.push_str(&json[upto..]);
    Cow::Owned(text)
}

/// Reads JSON; if that fails, reads it [`legible`].
pub fn read_legible<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&legible(json)))
}

/// Decodes a raw string with its quotes, with U+FFFD for each lone surrogate. Only for display:
/// different strings may become the same. `None`: not a string.
pub(crate) fn decode_lossy(raw: &str) -> Option<Cow<'_, str>> {
    let exact = json::decode(raw);
    exact.or_else(|| serde_json::from_str(&legible(raw)).ok().map(Cow::Owned))
}

/// Returns whether every reader accepts a JSON text unchanged.
pub fn is_legible(json: &str) -> bool {
    edits(json).is_empty()
}

fn edits(json: &str) -> Vec<(Range<usize>, &'static str)> {
    let bytes = json.as_bytes();
    let mut edits = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => json::string(bytes, at).map(|text| {
                let surrogates = lone_surrogates(&bytes[text.clone()]).into_iter();
                edits.extend(
                    surrogates
                        .map(|lone| (text.start + lone.start..text.start + lone.end, REPLACEMENT)),
                );
                text.end
            }),
            b'{' | b'[' if depth == LEVELS => json::value(bytes, at).map(|value| {
                edits.push((value.clone(), NOT_READ));
                value.end
            }),
            b'{' | b'[' => {
                depth += 1;
                Some(at + 1)
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                Some(at + 1)
            }
            b'-' | b'0'..=b'9' => json::value(bytes, at).map(|number| {
                if !is_in_range(&json[number.clone()]) {
                    edits.push((number.clone(), NOT_READ));
                }
                number.end
            }),
            _ => Some(at + 1),
        };
        let Some(end) = end else { break };
        at = end;
    }
    edits
}

fn is_in_range(number: &str) -> bool {
    let is_plain = number.len() <= DIGITS && !number.contains(['e', 'E']);
    is_plain || number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The escapes in a string that are half of a pair.
fn lone_surrogates(text: &[u8]) -> Vec<Range<usize>> {
    const ESCAPE: usize = r"\u0000".len();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', text.get(at..).unwrap_or_default()) {
        at += found;
        at += match unit(text, at) {
            Some(0xd800..=0xdbff) if matches!(unit(text, at + ESCAPE), Some(0xdc00..=0xdfff)) => {
                2 * ESCAPE
            }
            Some(0xd800..=0xdfff) => {
                lone.push(at..at + ESCAPE);
                ESCAPE
            }
            Some(_) => ESCAPE,
            None => 2,
        };
    }
    lone
}

fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
