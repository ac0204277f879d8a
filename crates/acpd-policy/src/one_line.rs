//! Quotes agents' text within one line for people. Callers clip the line.

use std::fmt;

pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", OneLine(text))
}

/// Escapes characters that would end the line or change its direction.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
        let mut rest = self.0;
        while let Some(at) = rest.find(|c| !is_plain(c)) {
            let (plain, odd) = rest.split_at(at);
            f.write_str(plain)?;
            let mut odd = odd.chars();
            odd.next().map_or(Ok(()), |c| write!(f, "{}", c.escape_debug()))?;
            rest = odd.as_str();
        }
        f.write_str(rest)
    }
}
