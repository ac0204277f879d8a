//! Escapes text from outside for people. All code that prints such text uses this module, except
//! that reasons of the policy come with escaped quotations (`acpd-policy/src/one_line.rs`).
//!
//! A character that a reader can see is shown unchanged. Every other one is shown by its number,
//! such as `<U+202E>`:
//!
//! - control characters (C0, DEL, C1) and line separators;
//! - characters that change the direction of writing;
//! - invisible characters: zero width, fillers, soft hyphens, joiners, variation selectors, tags;
//! - spaces other than the plain one;
//! - private use and unassigned characters, which look different everywhere, or like nothing.
//!
//! | form | white space | for |
//! | --- | --- | --- |
//! | [`one_line`] | runs of it become one space | names, titles, paths, messages, questions |
//! | [`verbatim`] | spaces and tabs stay | one line of a command or a file |
//! | [`prose`] | newlines, tabs and spaces of every script stay | long texts of agents and people |
//!
//! Prose keeps invisible characters that ordinary writing needs: the joiners U+200C and U+200D
//! (Persian, scripts of India, many emoji) and the selectors U+FE0E and U+FE0F (symbol or emoji).
//! The other forms show joiners, because a name or a command does not need them; a selector stays
//! if it makes an emoji of the symbol before it.
//!
//! Output has one meaning only: in the other two forms a `<U+` of the text itself is shown as
//! `<U+003C>U+`. Prose keeps it, so that an escaped log is not escaped again.

use std::fmt::{self, Write as _};

const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
/// Shows the character before as text, or as a picture.
const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];
/// Makes a key of the digit before it, with a selector between the two.
const KEYCAP: char = '\u{20e3}';

/// A text that is displayed escaped.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a> {
    text: &'a str,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneLine,
    Verbatim,
    Prose,
}

/// Displays a text on one line, without white space around it.
pub fn one_line(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::OneLine }
}

/// Displays a line with its white space.
pub fn verbatim(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::Verbatim }
}

/// Displays a text of several lines.
pub fn prose(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::Prose }
}

/// Returns the text as one word of a shell command, quoted if needed. The caller that shows the
/// command escapes it.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.form != Form::OneLine {
            return write_escaped(self.text, self.form, f);
        }
        let words = self.text.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
        for (at, word) in words.enumerate() {
            if at > 0 {
                f.write_char(' ')?;
            }
            write_escaped(word, self.form, f)?;
        }
        Ok(())
    }
}

fn write_escaped(text: &str, form: Form, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut written = 0;
    let mut before = None;
    for (at, char) in text.char_indices() {
        let end = at + char.len_utf8();
        let after = &text[end..];
        if !stays(char, before, after, form) {
            f.write_str(&text[written..at])?;
            // A carriage return before a newline has no effect.
            if !(char == '\r' && form == Form::Prose && after.starts_with('\n')) {
                write!(f, "<U+{:04X}>", u32::from(char))?;
            }
            written = end;
        }
        before = Some(char);
    }
    f.write_str(&text[written..])
}

fn stays(char: char, before: Option<char>, after: &str, form: Form) -> bool {
    let is_prose = form == Form::Prose;
    match char {
        '<' => is_prose || !after.starts_with("U+"),
        '\n' => is_prose,
        '\t' => true,
        char if JOINERS.contains(&char) => is_prose,
        char if SELECTORS.contains(&char) => {
            let is_symbol =
                |char: char| !char.is_ascii() && !char.is_alphanumeric() && is_seen(char);
            is_prose || before.is_some_and(is_symbol) || after.starts_with(KEYCAP)
        }
        '\u{2028}' | '\u{2029}' => false,
        char if is_prose && char.is_whitespace() && !char.is_control() => true,
        char => is_seen(char),
    }
}

/// Returns whether a reader sees this character; the only visible space is the plain one.
fn is_seen(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\u{7f}' => false,
        // Invisible letters, marks and symbols.
        '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}' => false,
        // First the quick test, which is true for most text.
        char => char.is_alphanumeric() || is_printable(char),
    }
}

/// Returns whether the character is a letter, mark, number, punctuation or symbol: `Debug` of the
/// standard library writes all others as numbers.
fn is_printable(char: char) -> bool {
    // Behind a letter, because a mark without one is written as a number, too.
    let mut bytes = [b'a'; 5];
    let end = 1 + char.encode_utf8(&mut bytes[1..]).len();
    str::from_utf8(&bytes[..end]).is_ok_and(|both| both.escape_debug().count() == 2)
}

/// Equivalent JSON in which every character is visible.
pub(crate) fn json(text: String) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(is_plain) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for char in text.chars() {
        match char {
            char if char == '\n' || is_seen(char) => escaped.push(char),
            // These occur between members only, as white space.
            '\t' | '\r' => escaped.push(' '),
            char => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
        }
    }
    escaped
}
