//! Quotes agents' text within one line for people. Callers clip the line.

pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", one_line(text))
}

/// Escapes characters that would end the line or change its direction.
pub(crate) fn one_line(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    text.chars().fold(String::new(), |mut line, c| {
        if is_plain(c) {
            line.push(c);
        } else {
            line.extend(c.escape_debug());
        }
        line
    })
}
