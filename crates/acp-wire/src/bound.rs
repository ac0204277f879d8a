//! Limits for names from peers. Names live long and are repeated in lists, errors and logs; without
//! a limit, a name as long as a line would be repeated with each of them.

/// Most bytes of an id, of any kind, and of the name of a method. A longer one is refused or left
/// out, never clipped: a part of an id is another id.
pub const LONGEST_ID: usize = 1 << 10;
/// Most bytes of a path: no system has longer ones.
pub const LONGEST_PATH: usize = 4 << 10;
/// Characters of a name that is only shown.
pub const NAME: usize = 200;
/// Characters of a kept sentence.
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
