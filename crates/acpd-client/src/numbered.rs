//! Lines of acpd with a number.
//!
//! acpd adds the number at the end of `params`. So most updates of a stream can be told from their
//! first and last bytes, and are not parsed.

use acp_wire::{locate, remove_member};
use acpd_api::NAMESPACE;
use bytes::Bytes;

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;
const TAIL: &[u8] = br#","_meta":{"_acpd":{"seq":"#;

/// A `session/update` whose members are in the usual order, and whose `_meta` has only the number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NumberedUpdate<'a> {
    pub(crate) session: &'a str,
    pub(crate) seq: u64,
    /// The line before `_meta`. Two objects are open there.
    before: &'a [u8],
}

impl NumberedUpdate<'_> {
    /// Reads a line of acpd, which is valid and has no member twice.
    pub(crate) fn read(line: &[u8]) -> Option<NumberedUpdate<'_>> {
        let rest = line.strip_prefix(HEAD)?;
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        let session = (rest[end] == b'"').then(|| str::from_utf8(&rest[..end]).ok())??;
        let numbered = line.strip_suffix(b"}}}}")?;
        let digits = numbered.iter().rposition(|byte| !byte.is_ascii_digit())? + 1;
        let seq = str::from_utf8(&numbered[digits..]).ok()?.parse().ok()?;
        let before = numbered[..digits].strip_suffix(TAIL)?;
        Some(NumberedUpdate { session, seq, before })
    }
}

pub(crate) fn unnumbered(line: &Bytes) -> Bytes {
    if let Some(NumberedUpdate { before, .. }) = NumberedUpdate::read(line) {
        return [before, b"}}"].concat().into();
    }
    let own = ["params", "_meta", NAMESPACE];
    let of = |member| [own[0], own[1], own[2], member];
    let mut line = remove_member(&remove_member(line, &of("seq")), &of("session"));
    for empty in [&own[..], &own[..2]] {
        if locate(&line, empty).is_some_and(|at| &line[at] == b"{}") {
            line = remove_member(&line, empty);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use acp_wire::set_member;

    use super::*;

    #[test]
    fn a_line_without_its_number_is_the_agents_own() {
        let usual =
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{}}}"#;
        let own = r#"{"method":"m","params":{"sessionId":"s","update":{}}}"#;
        let with_meta = r#"{"method":"m","params":{"_meta":{"x":1},"sessionId":"s"}}"#;
        for text in [usual, own, with_meta] {
            let line = Bytes::from_static(text.as_bytes());
            for number in [&br#"{"seq":7}"#[..], br#"{"seq":7,"session":"s"}"#] {
                let numbered = set_member(&line, &["params", "_meta", NAMESPACE], number);
                assert_eq!(unnumbered(&numbered), line);
            }
        }
    }

    #[test]
    fn only_an_update_in_the_usual_order_is_not_parsed() {
        let read = |session: &str, more: &str, number: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}"{more},"_meta":{{"_acpd":{number}}}}}}}"#
            );
            NumberedUpdate::read(text.as_bytes()).map(|read| (read.session.to_owned(), read.seq))
        };
        assert_eq!(read("s", r#","update":{}"#, r#"{"seq":12}"#), Some(("s".to_owned(), 12)));
        assert_eq!(read("s", "", r#"{"seq":1}"#), Some(("s".to_owned(), 1)));
        assert_eq!(read(r#"a\"b"#, "", r#"{"seq":1}"#), None);
        assert_eq!(read("s", "", r#"{"seq":1,"session":"s"}"#), None);
        assert_eq!(read("s", "", r#"{"seq":99999999999999999999}"#), None);
        assert_eq!(read("s", "", r#"{"seq":""}"#), None);
        assert_eq!(NumberedUpdate::read(HEAD), None);
    }
}
