//! Recovers the id from a line that is not a message, or from the beginning of one.
//!
//! The peer waits for such a line as an answer, or for an answer to it. Its outermost members
//! mostly have the id.

use serde_json::value::RawValue;

use crate::id::Id;

/// The readable outermost members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The id, if there is exactly one.
    pub id: Option<Id>,
    /// The line has a method, so it is no answer.
    pub has_method: bool,
}

impl Head {
    /// Reads bytes that need be neither complete nor JSON nor text.
    pub fn of(line: &[u8]) -> Self {
        let (mut head, mut ids) = (Self::default(), 0);
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = line.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let start = at;
                    while let Some(byte) = line.get(at).filter(|byte| **byte != b'"') {
                        at += if *byte == b'\\' { 2 } else { 1 };
                    }
                    let name = line.get(start..at).unwrap_or_default();
                    at += 1;
                    let rest = line.get(at..).unwrap_or_default().trim_ascii_start();
                    match (rest.strip_prefix(b":"), name) {
                        (Some(value), b"id") if depth == 1 => {
                            ids += 1;
                            head.id = id(value);
                        }
                        (Some(_), b"method") if depth == 1 => head.has_method = true,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        head.id.take_if(|_| ids > 1);
        head
    }
}

/// Reads an id at the beginning. A number at the very end may be cut off.
fn id(bytes: &[u8]) -> Option<Id> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    let is_whole = value.get().ends_with('"') || values.byte_offset() < bytes.len();
    Id::from_raw(value).filter(|_| is_whole)
}
