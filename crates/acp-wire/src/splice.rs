//! Changes one value of a line, and leaves every other byte unchanged.

use std::ops::Range;

use bytes::Bytes;

use crate::id::Id;
use crate::locate::locate;
use crate::scan::json::{self, Lookup, Member};

/// Replaces byte ranges of a line. The edits must be sorted and must not overlap.
pub fn splice(line: &[u8], edits: &[(Range<usize>, &[u8])]) -> Bytes {
    let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
    let mut out = Vec::with_capacity(line.len() + added);
    let mut kept = 0;
    for (range, text) in edits {
        out.extend_from_slice(&line[kept..range.start]);
        out.extend_from_slice(text);
        kept = range.end;
    }
    out.extend_from_slice(&line[kept..]);
    out.into()
}

/// Replaces the id of a message.
pub fn set_id(line: &Bytes, id: &Id) -> Bytes {
    set_member(line, &["id"], id.raw().as_bytes())
}

/// Sets the member at `path` to `value` (JSON text), and adds the member and its parents if they
/// are missing or no objects. Returns the line unchanged if `path` is empty or the line is not an
/// object.
pub fn set_member(line: &Bytes, path: &[&str], value: &[u8]) -> Bytes {
    let mut at = json::skip_space(line, 0);
    for (depth, key) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        match json::member(line, at, key) {
            None => break,
            Some(Lookup::Missing { end, empty }) => {
                let mut text = Vec::with_capacity(64 + value.len());
                if !empty {
                    text.push(b',');
                }
                push_name(&mut text, key);
                push_nested(&mut text, rest, value);
                return splice(line, &[(end..end, &text)]);
            }
            Some(Lookup::Found(Member { value: found, .. })) => {
                if rest.is_empty() || line.get(found) != Some(&b'{') {
                    let Some(range) = json::value(line, found) else { break };
                    let mut text = Vec::new();
                    push_nested(&mut text, rest, value);
                    return splice(line, &[(range, &text)]);
                }
                at = found;
            }
        }
    }
    line.clone()
}

/// Makes an answer with one outcome, as [`parse`](crate::parse) reads it: some agents add the other
/// one as `null`, or write neither for an empty result.
pub fn with_one_outcome(line: &Bytes) -> Bytes {
    let of = |name| locate(line, &[name]).map(|at| &line[at] != b"null");
    match (of("result"), of("error")) {
        (Some(_), Some(true)) => remove_member(line, &["result"]),
        (Some(_), Some(false)) => remove_member(line, &["error"]),
        (None, Some(true)) | (Some(_), None) => line.clone(),
        (None, Some(false) | None) => {
            set_member(&remove_member(line, &["error"]), &["result"], b"null")
        }
    }
}

/// Removes the member at `path`, with duplicates. Returns the line unchanged if there is none.
pub fn remove_member(line: &Bytes, path: &[&str]) -> Bytes {
    let mut line = line.clone();
    while let Some(range) = removable(&line, path) {
        line = splice(&line, &[(range, b"")]);
    }
    line
}

/// The range to cut so that a member is gone together with one comma.
fn removable(line: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let (last, parents) = path.split_last()?;
    let at = json::enter_path(line, parents)?;
    let Lookup::Found(member) = json::member(line, at, last)? else { return None };
    let end = json::value(line, member.value)?.end;
    Some(json::with_comma(line, member.key..end, member.previous.is_none()))
}

fn push_nested(out: &mut Vec<u8>, path: &[&str], value: &[u8]) {
    for key in path {
        out.push(b'{');
        push_name(out, key);
    }
    out.extend_from_slice(value);
    out.resize(out.len() + path.len(), b'}');
}

fn push_name(out: &mut Vec<u8>, key: &str) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
}
