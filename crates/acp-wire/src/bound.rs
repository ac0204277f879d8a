//! Clips names that a peer gives. Names live long and are repeated in lists, errors and logs; unclipped, a
//! name of the maximum line length would be repeated with each of them.

/// The longest id, of a request, a session or anything else, and the longest name of a method, in bytes.
/// What has a longer one is refused or left out: a part of an id is another id.
pub const LONGEST_ID: usize = 1 << 10;
/// The longest path, in bytes: no system has longer ones.
pub const LONGEST_PATH: usize = 4 << 10;
/// Characters of a name that is only shown.
pub const NAME: usize = 200;
/// The longest sentence that is kept, in characters.
pub const SENTENCE: usize = 1_000;

/// The text, cut to this many characters with a sign that there are more.
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_long_is_clipped() {
        assert_eq!(clipped("äöü", 3), "äöü");
        assert_eq!(clipped("äöüß", 3), "äöü…");
        assert_eq!(clipped("", 0), "");
    }
}
