//! One number for everything that the hub wrote and did in a run.
//!
//! Two versions of the hub that behave the same give the same number for the same seed: every record
//! that is committed and every effect that is done goes in, in order. Names of types and fields count only by the
//! order in which they first occur, so a renamed type changes nothing.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write as _};

/// FNV-1a over the `Debug` text of what it is fed.
#[derive(Debug)]
pub(super) struct Digest {
    hash: u64,
    /// Names in the order in which they first occurred.
    names: HashMap<String, usize>,
    text: String,
}

impl Digest {
    pub(super) fn new() -> Digest {
        Digest { hash: 0xcbf2_9ce4_8422_2325, names: HashMap::new(), text: String::new() }
    }

    /// The number so far.
    pub(super) fn value(&self) -> u64 {
        self.hash
    }

    pub(super) fn feed(&mut self, what: &impl Debug) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        // Writing to a string does not fail.
        let _: fmt::Result = write!(text, "{what:?};");
        self.take(&text);
        self.text = text;
    }

    fn take(&mut self, text: &str) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let len = match first {
                '"' => quoted(rest),
                'a'..='z' | 'A'..='Z' | '_' => {
                    let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                    let len = len.unwrap_or(rest.len());
                    self.name(&rest[..len]);
                    rest = &rest[len..];
                    continue;
                }
                _ => first.len_utf8(),
            };
            self.bytes(&rest.as_bytes()[..len]);
            rest = &rest[len..];
        }
    }

    fn name(&mut self, name: &str) {
        let next = self.names.len();
        let number = match self.names.get(name) {
            Some(number) => *number,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        };
        self.bytes(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Length of the string literal that a text begins with, quotes included.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `Debug` with a text of its own.
    struct Text(&'static str);

    impl Debug for Text {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    fn digest(texts: &[&'static str]) -> u64 {
        let mut digest = Digest::new();
        for text in texts {
            digest.feed(&Text(text));
        }
        digest.value()
    }

    #[test]
    fn a_renamed_type_changes_nothing() {
        let old =
            digest(&["Asked { why: Why(1), to: None }", "Asked { why: Why(2), to: Some(3) }"]);
        let new =
            digest(&["Open { purpose: P(1), to: None }", "Open { purpose: P(2), to: Some(3) }"]);
        assert_eq!(old, new);
    }

    #[test]
    fn values_order_and_names_that_stand_for_others_count() {
        let texts = [
            digest(&["A(1)", "B(2)"]),
            digest(&["B(2)", "A(1)"]),
            digest(&["A(1)", "B(3)"]),
            digest(&["A(1)", "A(2)"]),
            digest(&["A(\"x y\")", "B(2)"]),
            digest(&["A(\"y x\")", "B(2)"]),
            digest(&["A(\"x \\\" y\")", "B(2)"]),
        ];
        for (at, one) in texts.iter().enumerate() {
            assert!(texts[..at].iter().all(|other| one != other), "{at} is told from the others");
        }
    }
}
