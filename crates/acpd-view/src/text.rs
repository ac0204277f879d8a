//! Text that may be printed: our own words, and text from outside in its escaped form.
//!
//! A [`Text`] is made of string literals, numbers, other texts and escaped text ([`Untrusted`]). It cannot be made
//! of a `String` or a borrowed `str`, because the compiler does not know where these come from.
//!
//! [`text!`](crate::text!) is its `format!`.

use std::fmt;
use std::io;
use std::ops::{Add, AddAssign};
use std::path::{Path, PathBuf};

use acpd_api::escape::{self, Escaped};
use acpd_api::{Amount, Untrusted};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Text that can be printed as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

/// Makes a [`Text`] as `format!` makes a string. The arguments follow the literal and implement [`Show`].
#[macro_export]
macro_rules! text {
    ($words:literal $(, $part:expr)* $(,)?) => {
        // `concat!` forbids names inside the literal: `{name}` would bypass `Show`.
        $crate::text::Text::of(format_args!(concat!($words) $(, $crate::text::Shown(&$part))*))
    };
}
/// What can be part of a [`Text`].
pub trait Show {
    /// Writes it so that it can be printed.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// An argument of [`text!`](crate::text!).
#[doc(hidden)]
#[derive(Debug)]
pub struct Shown<'a, T>(pub &'a T);

impl<T: Show> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

macro_rules! show_as_displayed {
    ($($kind:ty),*) => {
        $(impl Show for $kind {
            fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })*
    };
}
show_as_displayed!(&'static str, Amount, Escaped<'_>, Text, i32, i64, u32, u64, usize, f64);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// On one line.
impl Show for Untrusted {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.one_line().show(f)
    }
}

impl Show for char {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape::verbatim(self.encode_utf8(&mut [0; 4])).show(f)
    }
}

/// Escaped on one line.
impl Show for Path {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Untrusted::of(self.display()).show(f)
    }
}

/// Escaped on one line.
impl Show for PathBuf {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().show(f)
    }
}

/// Escaped on one line.
impl Show for io::Error {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Untrusted::of(self).show(f)
    }
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self).show(f)
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |shown| shown.show(f))
    }
}

impl Text {
    pub fn new() -> Text {
        Text::default()
    }

    /// The words, `count` times.
    pub fn repeated(words: &'static str, count: usize) -> Text {
        Text(words.repeat(count))
    }

    /// Only for [`text!`](crate::text!), which wraps each argument.
    #[doc(hidden)]
    pub fn of(words: fmt::Arguments<'_>) -> Text {
        Text(words.to_string())
    }

    /// The text, to print it or to look at it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its columns on a terminal, if it has no styles.
    pub fn width(&self) -> usize {
        self.0.width()
    }

    /// Cut to at most this many columns.
    #[must_use]
    pub fn cut(&self, room: usize) -> Text {
        if self.width() <= room {
            return self.clone();
        }
        let mut used = 1;
        let fits = |char: &char| {
            used += char.width().unwrap_or(0);
            used <= room
        };
        Text(self.0.chars().take_while(fits).chain(['…']).collect())
    }

    /// Cut in its middle to at most this many columns; more of its end stays, which tells more of a path.
    #[must_use]
    pub fn cut_middle(&self, room: usize) -> Text {
        if self.width() <= room || room < 4 {
            return self.cut(room);
        }
        let (mut used, head) = (0, (room - 1) / 3);
        let fits = |char: &char, used: &mut usize, room: usize| {
            *used += char.width().unwrap_or(0);
            *used <= room
        };
        let first: String = self.0.chars().take_while(|char| fits(char, &mut used, head)).collect();
        let tail = room - 1 - first.width();
        let mut used = 0;
        let last = self.0.chars().rev().take_while(|char| fits(char, &mut used, tail));
        let last: Vec<char> = last.collect();
        Text(first.chars().chain(['…']).chain(last.into_iter().rev()).collect())
    }

    /// Its rows on a screen of this width, if it has no styles. An empty line is a row.
    pub fn rows(&self, room: usize) -> Vec<Text> {
        let (mut rows, mut used) = (vec![String::new()], 0);
        for char in self.0.chars() {
            let width = char.width().unwrap_or(0);
            if used + width > room {
                rows.push(String::new());
                used = 0;
            }
            used += width;
            rows.last_mut().expect("there is always one").push(char);
        }
        rows.into_iter().map(Text).collect()
    }

    /// Of characters of other texts.
    pub(crate) fn of_chars(chars: impl Iterator<Item = char>) -> Text {
        Text(chars.collect())
    }

    /// With spaces in place of tabs: how wide a tab is depends on where it is.
    pub(crate) fn without_tabs(self) -> Text {
        if self.0.contains('\t') { Text(self.0.replace('\t', "    ")) } else { self }
    }

    /// Without white space at its end.
    #[must_use]
    pub fn trim_end(&self) -> Text {
        Text(self.0.trim_end().to_owned())
    }

    /// Texts with something between them.
    pub fn join(texts: impl IntoIterator<Item = Text>, between: &'static str) -> Text {
        let mut joined = Text::new();
        for (at, text) in texts.into_iter().enumerate() {
            if at > 0 {
                joined += between;
            }
            joined += text;
        }
        joined
    }
}

impl From<&'static str> for Text {
    fn from(words: &'static str) -> Text {
        Text(words.to_owned())
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

impl From<Escaped<'_>> for Text {
    fn from(escaped: Escaped<'_>) -> Text {
        Text(escaped.to_string())
    }
}

/// On one line.
impl From<&Untrusted> for Text {
    fn from(untrusted: &Untrusted) -> Text {
        untrusted.one_line().into()
    }
}

/// On one line.
impl From<Untrusted> for Text {
    fn from(untrusted: Untrusted) -> Text {
        untrusted.one_line().into()
    }
}

impl<T: Into<Text>> AddAssign<T> for Text {
    fn add_assign(&mut self, more: T) {
        self.0.push_str(&more.into().0);
    }
}

impl<T: Into<Text>> Add<T> for Text {
    type Output = Text;

    fn add(mut self, more: T) -> Text {
        self += more;
        self
    }
}

impl FromIterator<Text> for Text {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Text {
        Text(texts.into_iter().map(|text| text.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_said_is_escaped_on_its_way_into_a_text() {
        let name = Untrusted::from("a\n\u{1b}[2Jb");
        let none: Option<Text> = None;
        let shown = text!("{} of {}: `{}`{}", 1, Text::from("x"), name, none);
        assert_eq!(shown.as_str(), "1 of x: `a <U+001B>[2Jb`");
        let both = text!("{:>3}", 7) + name.prose();
        assert_eq!(both.as_str(), "  7a\n<U+001B>[2Jb");
    }

    #[test]
    fn a_text_is_cut_where_the_room_ends() {
        assert_eq!(Text::from("日本 and").cut(7).as_str(), "日本 a…");
        assert_eq!(Text::from("日本").cut(4).as_str(), "日本");
        let path = Text::from("~/src/long/way/日本");
        assert_eq!(path.cut_middle(12).as_str(), "~/s…way/日本");
        assert_eq!(path.cut_middle(11).as_str(), "~/s…ay/日本");
        assert_eq!(path.cut_middle(3).as_str(), "~/…");
        assert_eq!(path.cut_middle(40), path);
    }

    #[test]
    fn a_text_has_as_many_rows_as_it_needs() {
        let rows = |text: &'static str, room| Text::from(text).rows(room);
        assert_eq!(rows("", 3), [Text::new()]);
        assert_eq!(rows("abcd", 3), [Text::from("abc"), "d".into()]);
        assert_eq!(rows("日本x", 3), [Text::from("日"), "本x".into()]);
    }
}
