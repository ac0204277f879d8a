//! Removes ambiguous and forbidden members from a line, before any other code reads it:
//!
//! - Members of a name that the sender may not use, in letters of ASCII.
//! - Duplicate members. Most readers of JSON take the last one, some the first, some refuse; once
//!   only the last one is left, all of them agree.
//!
//! Lines are those that [`parse`] takes. Every other byte stays. Hardly any line needs a change,
//! which one scan shows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use bytes::Bytes;
use memchr::{memchr, memmem};

use crate::envelope::{Malformed, Message, parse};
use crate::locate::SESSION;
use crate::scan::json;
use crate::splice::splice;

/// Members of an object up to which all pairs are compared.
const FEW: usize = 16;
/// Most members of open objects: no message has more.
const MOST: usize = 1 << 20;

/// The line without all members of this name, at any depth; `None` if it has none.
pub fn without_members(line: &Bytes, name: &str) -> Option<Bytes> {
    // Hardly any line has the name, or one of its letters escaped.
    let is_letter = |at: usize| {
        let digits = line.get(at + 4..at + 6).and_then(|text| std::str::from_utf8(text).ok());
        let letter = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        letter.is_some_and(|letter| name.as_bytes().contains(&letter))
    };
    if memmem::find(line, name.as_bytes()).is_none()
        && !memmem::find_iter(line, br"\u00").any(is_letter)
    {
        return None;
    }
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &line[at..]) {
        let key = json::string(line, at + quote)?;
        at = key.end;
        let colon = json::skip_space(line, key.end);
        // A string before a colon is a key.
        if line.get(colon) != Some(&b':') || !json::is_key(&line[key.clone()], name) {
            continue;
        }
        let value = json::value(line, json::skip_space(line, colon + 1))?;
        let follows_a_cut = cuts.last().is_some_and(|cut| cut.end == key.start);
        let is_first = follows_a_cut || line[..key.start].trim_ascii_end().ends_with(b"{");
        cuts.push(json::with_comma(line, key.start..value.end, is_first));
        at = cuts.last().map_or(value.end, |cut| cut.end);
    }
    (!cuts.is_empty()).then(|| cut_out(line, &cuts))
}

/// The line without members of the reserved name, and with only the last of duplicate members;
/// `None` if nothing changes.
///
/// # Errors
/// If the session in the params is duplicate, because a message must not be for different sessions
/// to different readers; and if there are more members than any message has.
pub fn tidy(line: &Bytes, reserved: Option<&str>) -> Result<Option<Bytes>, Malformed> {
    let Look { may_be_reserved, superseded } = look(line, reserved)?;
    let without = reserved.filter(|_| may_be_reserved).and_then(|name| without_members(line, name));
    match without {
        Some(line) => {
            let Look { superseded, .. } = look(&line, None)?;
            Ok(Some(without_doubles(&line, superseded)?.unwrap_or(line)))
        }
        None => without_doubles(line, superseded),
    }
}

/// Reads a line of a peer: `then` gets its message and the line, both after [`tidy`], and whether
/// the line is unchanged.
pub fn receive<R>(
    line: &Bytes,
    reserved: Option<&str>,
    then: impl FnOnce(Result<Message<'_>, Malformed>, &Bytes, bool) -> R,
) -> R {
    let message = parse(line);
    if message.is_err() {
        return then(message, line, true);
    }
    match tidy(line, reserved) {
        Ok(None) => then(message, line, true),
        Ok(Some(tidied)) => then(parse(&tidied), &tidied, false),
        Err(malformed) => then(Err(malformed), line, true),
    }
}

#[derive(Default)]
struct Look {
    /// The line may have members of the reserved name.
    may_be_reserved: bool,
    /// Ranges to cut so that only the last of each duplicate member remains. Ranges may overlap.
    superseded: Vec<Range<usize>>,
}

struct Open {
    /// Index of its first key among those of all open objects.
    first: usize,
    /// One of its keys has an escape.
    has_escape: bool,
}

fn look(line: &[u8], reserved: Option<&str>) -> Result<Look, Malformed> {
    let name = reserved.unwrap_or_default().as_bytes();
    let mut seen = Look::default();
    let mut open: Vec<Open> = Vec::with_capacity(8);
    let mut keys: Vec<Range<usize>> = Vec::with_capacity(32);
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b'"' => {
                let Some(text) = json::string(line, at) else { break };
                at = text.end;
                // A string before a colon is a key.
                if line.get(json::skip_space(line, at)) == Some(&b':') {
                    let key = &line[text.start + 1..text.end - 1];
                    let has_escape = key.contains(&b'\\');
                    seen.may_be_reserved |= key == name || has_escape;
                    if let Some(object) = open.last_mut() {
                        object.has_escape |= has_escape;
                    }
                    keys.push(text);
                    if keys.len() > MOST {
                        return Err(Malformed::TooMuch);
                    }
                }
                continue;
            }
            b'{' => open.push(Open { first: keys.len(), has_escape: false }),
            b'}' => {
                let Some(Open { first, has_escape }) = open.pop() else { break };
                // An escaped text may be any key.
                if has_escape || may_repeat(line, &keys[first..]) {
                    seen.superseded.extend(superseded(line, &keys[first..], at));
                }
                keys.truncate(first);
            }
            _ => {}
        }
        at += 1;
    }
    Ok(seen)
}

fn without_doubles(line: &Bytes, mut cuts: Vec<Range<usize>>) -> Result<Option<Bytes>, Malformed> {
    if cuts.is_empty() {
        return Ok(None);
    }
    let params = json::enter_path(line, &["params"]);
    if params.is_some_and(|params| json::repeats(&line[params..], SESSION)) {
        return Err(Malformed::Duplicate(SESSION));
    }
    cuts.sort_unstable_by_key(|cut| cut.start);
    let mut upto = 0;
    cuts.retain(|cut| {
        // Members inside of a removed member are removed with it.
        let is_outer = cut.start >= upto;
        upto = upto.max(cut.end);
        is_outer
    });
    Ok(Some(cut_out(line, &cuts)))
}

fn may_repeat(line: &[u8], keys: &[Range<usize>]) -> bool {
    let text = |key: &Range<usize>| &line[key.clone()];
    if keys.len() <= FEW {
        return (1..keys.len()).any(|at| keys[..at].iter().any(|key| text(key) == text(&keys[at])));
    }
    let hash = |key: &Range<usize>| {
        let mut hasher = DefaultHasher::new();
        text(key).hash(&mut hasher);
        hasher.finish()
    };
    let mut hashes: Vec<u64> = keys.iter().map(hash).collect();
    hashes.sort_unstable();
    hashes.windows(2).any(|two| two[0] == two[1])
}

/// Returns the ranges to cut from the object with these keys, whose `}` is at `close`, so that the
/// last member of each name remains.
fn superseded(line: &[u8], keys: &[Range<usize>], close: usize) -> Vec<Range<usize>> {
    let mut last: HashMap<Cow<'_, str>, usize> = HashMap::new();
    let mut is_superseded = vec![false; keys.len()];
    for (at, key) in keys.iter().enumerate() {
        let text = std::str::from_utf8(&line[key.clone()]).unwrap_or_default();
        // Keys that are no text are equal only if they are written in the same way.
        let name = json::decode(text).unwrap_or(Cow::Borrowed(text));
        if let Some(before) = last.insert(name, at) {
            is_superseded[before] = true;
        }
    }
    let first_left = is_superseded.iter().position(|gone| !gone).unwrap_or(0);
    let cut = |at: usize| {
        let upto = line[..keys.get(at + 1).map_or(close, |next| next.start)].trim_ascii_end();
        let value = upto.strip_suffix(b",").unwrap_or(upto).trim_ascii_end();
        json::with_comma(line, keys[at].start..value.len(), at < first_left)
    };
    (0..keys.len()).filter(|at| is_superseded[*at]).map(cut).collect()
}

fn cut_out(line: &[u8], cuts: &[Range<usize>]) -> Bytes {
    let edits: Vec<(Range<usize>, &[u8])> =
        cuts.iter().map(|cut| (cut.clone(), &b""[..])).collect();
    splice(line, &edits)
}
