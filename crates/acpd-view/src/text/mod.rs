//! The text layer: all displayed text, with its style.
//!
//! ```text
//!  literals, numbers ───────────┐
//!  Untrusted, Path, io::Error ──┴─text!─▶ Text ──▶ stream: acpctl's Ui writes words, and colours if it can
//!                                         │  ▲ ──▶ cells: acpd-tui's Canvas
//!                        wrap, split, cut └──┘
//! ```
//!
//! - [`Text`] is the only printed type. It consists of literals, numbers, other texts and escaped
//!   text ([`Untrusted`], [`acpd_api::escape`]). A `String` or a borrowed `str` cannot become one,
//!   because the compiler does not know their origin. [`text!`](crate::text!) is its `format!`.
//! - A [`Style`] gives each part its meaning ([`Role`]). Styles are not characters: they have no
//!   width, and a stream without colours drops them. [`Style::look`] is the only table of colours.
//! - [`Table`] fits cells into lines.
//!
//! `Untrusted` and `escape` are in `acpd-api`, because the protocol's types use them. I/O is in the
//! programs.

mod style;
mod table;

pub use style::{BOLD, Role, Style};
pub use table::{Cut, Table, key_values};

use std::fmt;
use std::io;
use std::ops::{Add, AddAssign};
use std::path::{Path, PathBuf};

use acpd_api::escape::{self, Escaped};
use acpd_api::{Amount, Untrusted};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Text that is safe to print, with a style for each part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    words: String,
    /// End offsets in bytes, with styles. The words after the last end are plain.
    parts: Vec<(usize, Style)>,
}

/// Delimiters of a styled part's style during formatting. Neither escaped text nor literals contain
/// them.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// Makes a [`Text`] as `format!` makes a string; arguments implement [`Show`].
#[macro_export]
macro_rules! text {
    ($words:literal $(, $part:expr)* $(,)?) => {
        // `concat!` forbids names inside the literal: `{name}` would bypass `Show`.
        $crate::text::Text::formatted(
            format_args!(concat!($words) $(, $crate::text::Shown(&$part))*)
        )
    };
}

pub trait Show {
    /// Writes the part escaped.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

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
show_as_displayed!(&'static str, Amount, Escaped<'_>, i32, i64, u32, u64, usize, f64);

/// Without styles.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Show for Text {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().try_for_each(|(words, style)| match style.code() {
            None => f.write_str(words),
            Some(code) => write!(f, "{BEGIN}{code}{words}{END}"),
        })
    }
}

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

impl Show for Path {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Untrusted::of(self.display()).show(f)
    }
}

impl Show for PathBuf {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().show(f)
    }
}

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

    /// Makes a row of a screen. Tabs become spaces, because the width of a tab depends on its
    /// column.
    pub fn of(style: impl Into<Style>, text: impl Into<Text>) -> Text {
        Text::new().and(style, text)
    }

    pub fn styled(style: impl Into<Style>, text: impl Into<Text>) -> Text {
        let (mut styled, style) = (Text::new(), style.into());
        styled.push(text.into().as_str(), style);
        styled
    }

    pub fn repeated(words: &'static str, count: usize) -> Text {
        Text { words: words.repeat(count), parts: Vec::new() }
    }

    /// Only for [`text!`](crate::text!), which wraps each argument.
    #[doc(hidden)]
    pub fn formatted(words: fmt::Arguments<'_>) -> Text {
        let words = words.to_string();
        let mut text = Text::new();
        for part in words.split(BEGIN).enumerate() {
            let plain = match part {
                (0, plain) => plain,
                (_, marked) => {
                    let (styled, plain) = marked.split_once(END).unwrap_or((marked, ""));
                    let mut chars = styled.chars();
                    let style = chars.next().and_then(Style::of_code).unwrap_or_default();
                    text.push(chars.as_str(), style);
                    plain
                }
            };
            text.push(plain, Style::default());
        }
        text
    }

    pub fn as_str(&self) -> &str {
        &self.words
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn width(&self) -> usize {
        self.words.width()
    }

    pub fn parts(&self) -> impl Iterator<Item = (&str, Style)> {
        let ends = self.parts.iter().copied();
        let rest = (self.words.len(), Style::default());
        let mut begin = 0;
        let parts = ends
            .chain([rest])
            .map(move |(end, style)| (&self.words[std::mem::replace(&mut begin, end)..end], style));
        parts.filter(|(words, _)| !words.is_empty())
    }

    fn push(&mut self, words: &str, style: Style) {
        let (begin, plain) = (self.words.len(), Style::default());
        self.words.push_str(words);
        if words.is_empty() || style == plain {
            return;
        }
        match self.parts.last_mut() {
            Some((end, last)) if *end == begin && *last == style => *end = self.words.len(),
            last => {
                if last.map_or(0, |(end, _)| *end) < begin {
                    self.parts.push((begin, plain));
                }
                self.parts.push((self.words.len(), style));
            }
        }
    }

    #[must_use]
    pub fn and(mut self, style: impl Into<Style>, text: impl Into<Text>) -> Text {
        let (style, text) = (style.into(), text.into());
        self.push(&text.words.replace('\t', "    "), style);
        self
    }

    #[must_use]
    pub fn restyled(&self, style: impl Fn(Style) -> Style) -> Text {
        let mut text = Text::new();
        self.parts().for_each(|(words, of)| text.push(words, style(of)));
        text
    }

    #[must_use]
    pub fn trim_end(&self) -> Text {
        let mut left = self.words.trim_end().len();
        let mut text = Text::new();
        for (words, style) in self.parts() {
            let kept = words.len().min(left);
            text.push(&words[..kept], style);
            left -= kept;
        }
        text
    }

    #[must_use]
    pub fn cut(&self, room: usize) -> Text {
        if self.width() <= room {
            return self.clone();
        }
        let chars = self.chars();
        let fits = fitting(chars.iter(), room.saturating_sub(1));
        let more = if room == 0 { "" } else { "…" };
        let mut cut = of_chars(&chars[..fits]);
        cut.push(more, chars.get(fits).map_or_else(Style::default, |(_, style)| *style));
        cut
    }

    /// Cuts out the middle. More of the end stays, because it identifies a path better.
    #[must_use]
    pub fn cut_middle(&self, room: usize) -> Text {
        if self.width() <= room || room < 4 {
            return self.cut(room);
        }
        let chars = self.chars();
        let head = of_chars(&chars[..fitting(chars.iter(), (room - 1) / 3)]);
        let tail = fitting(chars.iter().rev(), room - 1 - head.width());
        head + "…" + of_chars(&chars[chars.len() - tail..])
    }

    /// Breaks the text into rows, between words if possible. White space at a break is dropped.
    pub fn wrap(&self, room: usize) -> Vec<Text> {
        let chars = self.chars();
        let width = |at: usize| chars[at].0.width().unwrap_or(0);
        let is_space = |at: usize| chars[at].0 == ' ';
        let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
        // The space after the last word that fits.
        let mut space = None;
        let mut at = 0;
        while at < chars.len() {
            if used + width(at) <= room || at == start {
                used += width(at);
                if is_space(at) && (start..at).any(|before| !is_space(before)) {
                    space = Some(at);
                }
                at += 1;
                continue;
            }
            let end = if is_space(at) { at } else { space.unwrap_or(at) };
            rows.push(of_chars(&chars[start..end]));
            start = end;
            while start < chars.len() && is_space(start) && (is_space(end)) {
                start += 1;
            }
            (at, used, space) = (start, 0, None);
        }
        rows.push(of_chars(&chars[start..]));
        rows
    }

    /// Breaks the text into rows at exactly `room` columns, as for code: nothing is dropped.
    pub fn split(&self, room: usize) -> Vec<Text> {
        let chars = self.chars();
        let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
        for (at, (char, _)) in chars.iter().enumerate() {
            let width = char.width().unwrap_or(0);
            if used + width > room && at > start {
                rows.push(of_chars(&chars[start..at]));
                (start, used) = (at, 0);
            }
            used += width;
        }
        rows.push(of_chars(&chars[start..]));
        rows
    }

    fn chars(&self) -> Vec<(char, Style)> {
        let chars = |(words, style): (&str, Style)| {
            words.chars().map(|char| (char, style)).collect::<Vec<_>>()
        };
        self.parts().flat_map(chars).collect()
    }

    /// Ends each line with a line feed.
    pub fn lines<'a>(lines: impl IntoIterator<Item = &'a Text>) -> Text {
        lines.into_iter().map(|line| line.clone() + "\n").collect()
    }

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

fn fitting<'a>(chars: impl Iterator<Item = &'a (char, Style)>, room: usize) -> usize {
    let mut used = 0;
    let fits = chars.take_while(|(char, _)| {
        used += char.width().unwrap_or(0);
        used <= room
    });
    fits.count()
}

fn of_chars(chars: &[(char, Style)]) -> Text {
    let mut text = Text::new();
    for part in chars.chunk_by(|(_, one), (_, other)| one == other) {
        text.push(&part.iter().map(|(char, _)| *char).collect::<String>(), part[0].1);
    }
    text
}

impl From<&'static str> for Text {
    fn from(words: &'static str) -> Text {
        Text { words: words.to_owned(), parts: Vec::new() }
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

impl From<Escaped<'_>> for Text {
    fn from(escaped: Escaped<'_>) -> Text {
        Text { words: escaped.to_string(), parts: Vec::new() }
    }
}

impl From<&Untrusted> for Text {
    fn from(untrusted: &Untrusted) -> Text {
        untrusted.one_line().into()
    }
}

impl From<Untrusted> for Text {
    fn from(untrusted: Untrusted) -> Text {
        untrusted.one_line().into()
    }
}

impl<T: Into<Text>> AddAssign<T> for Text {
    fn add_assign(&mut self, more: T) {
        more.into().parts().for_each(|(words, style)| self.push(words, style));
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
        texts.into_iter().fold(Text::new(), |all, text| all + text)
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
    fn styles_stay_with_their_words() {
        let (name, plain) = (Style::of(Role::Name).strong(), Style::default());
        let parts = |text: &Text| -> Vec<(String, Style)> {
            text.parts().map(|(words, style)| (words.to_owned(), style)).collect()
        };
        let text = text!("a {} c{}", Text::of(name, "日本 b"), Text::of(Role::Bad, ""));
        let whole =
            [("a ".to_owned(), plain), ("日本 b".to_owned(), name), (" c".to_owned(), plain)];
        assert_eq!((text.as_str(), parts(&text)), ("a 日本 b c", whole.to_vec()));
        assert_eq!(text, Text::from("a ").and(name, "日本").and(name, " b") + " c");
        let cut = text.cut(5);
        assert_eq!((cut.as_str(), parts(&cut)[1].clone()), ("a 日…", ("日…".to_owned(), name)));
        let rows: Vec<Text> = text.wrap(6);
        assert_eq!(rows, [Text::from("a ").and(name, "日本"), Text::of(name, "b") + " c"]);
        assert_eq!(text!("{}", text), text);
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
}
