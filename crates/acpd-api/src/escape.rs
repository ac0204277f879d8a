//! Escapes text from outside for a person. All code that prints such text uses this module; only the reasons of
//! the policy arrive with their quotations already escaped (`acpd-policy/src/one_line.rs`).
//!
//! A character that a reader can see is shown as it is. Every other one is shown by its number, such as
//! `<U+202E>`:
//!
//! - control characters (C0, DEL, C1) and line separators;
//! - what changes the direction of writing;
//! - what is invisible: zero width, fillers, soft hyphens, joiners, variation selectors, tags;
//! - spaces other than the plain one;
//! - private use and unassigned characters, which look different everywhere, or like nothing.
//!
//! There are three forms:
//!
//! | form | white space | for |
//! | --- | --- | --- |
//! | [`one_line`] | runs of it become one space | names, titles, paths, messages, questions |
//! | [`verbatim`] | spaces and tabs stay | one line of a command or a file |
//! | [`prose`] | newlines, tabs and spaces of every script stay | long texts of agents and people |
//!
//! Prose keeps invisible characters that ordinary writing needs: the joiners U+200C and U+200D (Persian,
//! scripts of India, many emoji) and the selectors U+FE0E and U+FE0F (symbol or emoji). In the other two
//! forms joiners are shown, because a name or a command has no use for them; a selector stays where it
//! makes an emoji of the symbol before it.
//!
//! A line has one meaning only: where the text itself contains `<U+`, that `<` is shown as `<U+003C>`.
//! Prose leaves it, so a log that was escaped when it was written is not escaped again.

use std::fmt::{self, Write as _};

const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
/// The character before is shown as text, or as a picture.
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

/// The text on one line, without white space around it.
pub fn one_line(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::OneLine }
}

/// A line as it is.
pub fn verbatim(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::Verbatim }
}

/// Displays text of several lines.
pub fn prose(text: &str) -> Escaped<'_> {
    Escaped { text, form: Form::Prose }
}

/// Returns the text as one word of a shell command, quoted if needed. It is not escaped; the caller
/// that shows the command does that.
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
            // A carriage return before a newline does nothing that the newline does not do.
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

/// Returns whether a reader sees this character, and a space is a plain space.
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
        // Quicker, and true of most text.
        char => char.is_alphanumeric() || is_printable(char),
    }
}

/// Returns whether it is a letter, mark, number, punctuation or symbol, by the `Debug` of strings
/// in the standard library, which writes all other characters as numbers.
fn is_printable(char: char) -> bool {
    // Behind a letter, because a mark without one is written as a number, too.
    let mut bytes = [b'a'; 5];
    let end = 1 + char.encode_utf8(&mut bytes[1..]).len();
    str::from_utf8(&bytes[..end]).is_ok_and(|both| both.escape_debug().count() == 2)
}

/// JSON text that means the same and in which every character is seen.
pub(crate) fn json(text: String) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(is_plain) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for char in text.chars() {
        match char {
            char if char == '\n' || is_seen(char) => escaped.push(char),
            // Within strings there can be none; between members they are white space.
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
