//! A forward scanner over valid JSON.
//!
//! Scanning allocates nothing and does not recurse. For bytes that are not JSON, or are cut short,
//! it returns `None` or a meaningless range inside them; it never panics.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

/// A member of an object.
pub(crate) struct Member {
    /// Position of the opening quote of the key.
    pub(crate) key: usize,
    /// Start of the value. Its end needs another scan ([`value`]), unless the caller continues
    /// inside.
    pub(crate) value: usize,
    /// End of the previous member's value.
    pub(crate) previous: Option<usize>,
}

pub(crate) enum Lookup {
    Found(Member),
    /// The object has no such member; one can be added here.
    Missing {
        /// End of the last value, or of the `{`.
        end: usize,
        empty: bool,
    },
}

/// Looks for a member of the object whose `{` is at `at`. `None`: there is no object.
pub(crate) fn member(json: &[u8], at: usize, key: &str) -> Option<Lookup> {
    let mut members = Members::of(json, at)?;
    if let Some((name, value)) = members.find(|(name, _)| is_key(&json[name.clone()], key)) {
        let previous = members.previous;
        return Some(Lookup::Found(Member { key: name.start, value, previous }));
    }
    members.is_whole.then(|| Lookup::Missing {
        end: members.previous.unwrap_or(at + 1),
        empty: members.previous.is_none(),
    })
}

/// Start of a member's value, without a scan for its end.
pub(crate) fn enter(json: &[u8], at: usize, key: &str) -> Option<usize> {
    match member(json, at, key)? {
        Lookup::Found(member) => Some(member.value),
        Lookup::Missing { .. } => None,
    }
}

/// Start of the value at a path of object members; the empty path is the whole value.
pub(crate) fn enter_path(json: &[u8], path: &[&str]) -> Option<usize> {
    path.iter().try_fold(skip_space(json, 0), |at, key| enter(json, at, key))
}

/// Starts of the values of these members, found in one walk.
pub(crate) fn enter_each<const N: usize>(
    json: &[u8],
    at: usize,
    keys: [&str; N],
) -> [Option<usize>; N] {
    let mut found = [None; N];
    let Some(members) = Members::of(json, at) else { return found };
    for (name, start) in members {
        let name = &json[name];
        let of = |(n, key): (usize, &&str)| (found[n].is_none() && is_key(name, key)).then_some(n);
        if let Some(n) = keys.iter().enumerate().find_map(of) {
            found[n] = Some(start);
            if found.iter().all(Option::is_some) {
                break;
            }
        }
    }
    found
}

/// Returns whether the value is an object with this member more than once.
pub(crate) fn repeats(json: &[u8], key: &str) -> bool {
    let members = Members::of(json, skip_space(json, 0)).into_iter().flatten();
    members.filter(|(name, _)| is_key(&json[name.clone()], key)).nth(1).is_some()
}

/// The range to cut a member together with one comma. `is_first`: no remaining member comes before
/// it.
pub(crate) fn with_comma(json: &[u8], member: Range<usize>, is_first: bool) -> Range<usize> {
    let Range { start, end } = member;
    if !is_first {
        let before = json[..start].trim_ascii_end();
        let comma = before.strip_suffix(b",").unwrap_or(before);
        return comma.trim_ascii_end().len()..end;
    }
    let next = skip_space(json, end);
    let is_followed = json.get(next) == Some(&b',');
    start..if is_followed { skip_space(json, next + 1) } else { end }
}

/// A walk over the keys of an object and the starts of their values. It ends early if the JSON is
/// broken.
pub(crate) struct Members<'a> {
    json: &'a [u8],
    at: usize,
    /// Start of the value that the next step passes.
    value: Option<usize>,
    /// End of the last value that was passed.
    previous: Option<usize>,
    /// The walk has come to the end of the object.
    is_whole: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn of(json: &'a [u8], at: usize) -> Option<Self> {
        let members = Self { json, at: at + 1, value: None, previous: None, is_whole: false };
        (json.get(at) == Some(&b'{')).then_some(members)
    }
}

impl Iterator for Members<'_> {
    type Item = (Range<usize>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(start) = self.value.take() {
            self.at = value(self.json, start)?.end;
            self.previous = Some(self.at);
        }
        let mut at = skip_space(self.json, self.at);
        match self.json.get(at)? {
            b'}' => {
                self.is_whole = true;
                return None;
            }
            b',' if self.previous.is_some() => at = skip_space(self.json, at + 1),
            _ => {}
        }
        let name = string(self.json, at)?;
        let colon = skip_space(self.json, name.end);
        if self.json.get(colon) != Some(&b':') {
            return None;
        }
        let start = skip_space(self.json, colon + 1);
        self.value = Some(start);
        Some((name, start))
    }
}

pub(crate) fn skip_space(json: &[u8], at: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    at + json[at.min(json.len())..].iter().take_while(space).count()
}

pub(crate) fn value(json: &[u8], at: usize) -> Option<Range<usize>> {
    match json.get(at)? {
        b'"' => string(json, at),
        b'{' | b'[' => container(json, at),
        _ => {
            let end =
                |byte: &&u8| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
            let len = json[at..].iter().take_while(end).count();
            (len > 0).then_some(at..at + len)
        }
    }
}

/// Decodes a raw string with its quotes. `None` for other values, and for a lone surrogate.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Returns whether a raw string with its quotes is this key.
pub(crate) fn is_key(raw: &[u8], key: &str) -> bool {
    let inner = &raw[1..raw.len() - 1];
    let is_same = |(one, other): &(&u8, &u8)| one == other && **one != b'\\';
    let same = inner.iter().zip(key.as_bytes()).take_while(is_same).count();
    match inner.get(same) {
        None => same == key.len(),
        // A text that begins with an escape may equal the rest of the key.
        Some(b'\\') => serde_json::from_slice::<String>(raw).is_ok_and(|name| name == key),
        Some(_) => false,
    }
}

pub(crate) fn string(json: &[u8], start: usize) -> Option<Range<usize>> {
    if json.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(start..at + 1);
        }
        at += 2;
    }
}

fn container(json: &[u8], start: usize) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match json.get(at)? {
            b'"' => {
                at = string(json, at)?.end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(start..at);
        }
    }
}
