//! The kept end of a command's output.

use std::collections::VecDeque;
use std::str;

/// The last bytes of a stream.
#[derive(Clone)]
pub(super) struct Kept {
    bytes: VecDeque<u8>,
    limit: usize,
    dropped: bool,
}

impl Kept {
    /// Bytes kept beyond the limit: up to three at the front may be the rest of a cut character,
    /// and up to three at the end are not shown yet. Text is never shorter than its bytes, so both
    /// stay out of the limit.
    const SPARE: usize = 6;

    pub(super) fn new(limit: usize) -> Kept {
        Kept { bytes: VecDeque::new(), limit, dropped: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let most = self.limit + Kept::SPARE;
        let last = &bytes[bytes.len().saturating_sub(most)..];
        let over = (self.bytes.len() + last.len()).saturating_sub(most);
        self.bytes.drain(..over);
        self.bytes.extend(last);
        self.dropped |= over > 0 || last.len() < bytes.len();
    }

    /// Returns the last text within the limit, and whether there was more before. The beginning of
    /// a character is shown only if the stream has ended.
    pub(super) fn text(&self, ended: bool) -> (String, bool) {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        let whole = if ended { bytes.len() } else { bytes.len() - unfinished(&bytes) };
        let mut text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        let cut = text.ceil_char_boundary(text.len().saturating_sub(self.limit));
        text.drain(..cut);
        (text, self.dropped || cut > 0)
    }
}

/// Returns the number of bytes at the end that are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let is_beginning = |tail: &&[u8]| {
        str::from_utf8(tail).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
    };
    let mut tails = (0..last.len()).map(|from| &last[from..]);
    tails.find(is_beginning).map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            any::<u8>().prop_map(|byte| vec![byte]),
            vec(0x80..=0xf4_u8, 0..5),
        ];
        vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_shown_is_the_end_of_the_text_within_the_limit_however_it_came(
            bytes in bytes(),
            sizes in vec(0..20_usize, 0..40),
            limit in 0..60_usize,
        ) {
            let mut kept = Kept::new(limit);
            let mut whole = Kept::new(usize::MAX - Kept::SPARE);
            let mut rest = &bytes[..];
            let all = String::from_utf8_lossy(&bytes);
            for size in sizes.into_iter().chain([usize::MAX]) {
                let (piece, later) = rest.split_at(size.min(rest.len()));
                rest = later;
                kept.push(piece);
                whole.push(piece);
                // Nothing that is shown is ever taken back.
                let (shown, more) = whole.text(false);
                prop_assert!(all.starts_with(&shown) && !more);
                let (end, more) = kept.text(false);
                prop_assert!(shown.ends_with(&end) && end.len() <= limit);
                prop_assert!(more || end == shown);
            }
            let (text, truncated) = kept.text(true);
            prop_assert!(all.ends_with(&text));
            prop_assert_eq!(truncated, text != all);
            // One more character would be too much.
            let before = all[..all.len() - text.len()].chars().next_back();
            prop_assert!(before.is_none_or(|c| text.len() + c.len_utf8() > limit));
            prop_assert!(kept.bytes.len() <= limit + Kept::SPARE);
        }
    }
}
