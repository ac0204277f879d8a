//! Growing Markdown as lines of a given width.
//!
//! ```text
//! text:   block block block … block │ last block
//! lines:  made once                 │ made again for each addition
//! ```
//!
//! A top-level block does not change after the next one begins, with one exception: a link
//! definition changes earlier links. A text with a definition is parsed as a whole each time.
//!
//! Architecture invariant: the final lines do not depend on the pieces in which a text arrived.

mod render;
mod table;

use std::ops::Range;

use acpd_api::Untrusted;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::text::Text;
use render::Renderer;

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Continuations that may change earlier lines. Others do so rarely.
const CONTINUATIONS: [&str; 12] =
    ["x", "\n\nx", "`", "```", "*", "**", "_", "__", "~~", "](x)", ">", "\n\n- x"];

/// Prepares a text for a document with two levels of headings: lowers its headings by two levels,
/// escapes HTML, and closes an open code block.
pub fn fenced_in(text: &str) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // A code block in a quote or a list ends with it.
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        let part = &text[range.clone()];
        match event {
            Event::Start(Tag::Heading { .. }) if part.starts_with('#') => {
                edits.push((range.start..range.start, "##".to_owned()));
            }
            Event::Start(Tag::Heading { .. }) => {
                // The line below makes it a heading.
                let line = part.trim_end().rfind('\n').map_or(0, |at| at + 1);
                let rule = line + part[line..].find(['=', '-']).unwrap_or_default();
                edits.push((range.start + rule..range.start + rule, "\\".to_owned()));
            }
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if depth == 0 => {
                let mark = part.chars().next().unwrap_or('`');
                let fence: String = part.chars().take_while(|char| *char == mark).collect();
                let last = part.trim_end().lines().skip(1).last().unwrap_or_default();
                let last = last.trim_start();
                let is_closed = last.len() >= fence.len() && last.chars().all(|char| char == mark);
                if !is_closed && range.end >= text.trim_end().len() {
                    let gap = if text.ends_with('\n') { "" } else { "\n" };
                    edits.push((text.len()..text.len(), format!("{gap}{fence}")));
                }
            }
            Event::Html(_) | Event::InlineHtml(_) => {
                edits.push((range.clone(), part.replace('<', "&lt;")));
            }
            _ => {}
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut fenced = String::with_capacity(text.len());
    let mut upto = 0;
    for (range, instead) in edits {
        if range.start >= upto {
            fenced.push_str(&text[upto..range.start]);
            fenced.push_str(&instead);
            upto = range.end;
        }
    }
    fenced.push_str(&text[upto..]);
    fenced
}

#[derive(Debug, Clone, Default)]
pub struct Markdown {
    width: usize,
    text: String,
    /// The lines of the text before this offset are final.
    stable: usize,
    stable_lines: usize,
    lines: Vec<Text>,
    is_current: bool,
    has_definitions: bool,
    /// The last carriage return was already read as a new line.
    ends_with_return: bool,
}

impl Markdown {
    pub fn new(width: usize) -> Markdown {
        Markdown { width: width.max(1), is_current: true, ..Markdown::default() }
    }

    pub fn whole(text: &Untrusted, width: usize) -> Vec<Text> {
        let mut markdown = Markdown::new(width);
        markdown.push(text);
        markdown.lines();
        markdown.lines
    }

    pub fn push(&mut self, more: &Untrusted) {
        let raw = more.raw();
        if raw.is_empty() {
            return;
        }
        let rest = if self.ends_with_return { raw.strip_prefix('\n').unwrap_or(raw) } else { raw };
        self.text.push_str(&rest.replace("\r\n", "\n").replace('\r', "\n"));
        self.ends_with_return = raw.ends_with('\r');
        self.is_current = false;
    }

    /// Every line ends with a line feed.
    pub fn text(&self) -> Untrusted {
        self.text.as_str().into()
    }

    pub fn lines(&mut self) -> &[Text] {
        if !self.is_current {
            self.is_current = true;
            self.render();
        }
        &self.lines
    }

    /// Returns the number of bytes that the next addition parses again.
    pub fn unsettled(&self) -> usize {
        self.text.len() - self.stable
    }

    /// Returns the number of lines that further text will hardly change, for output that cannot
    /// take a line back.
    pub fn settled(&mut self) -> usize {
        self.lines();
        let tail = &self.text[self.stable..];
        // The next line may turn this one into the head of a table.
        if tail.lines().next().is_none_or(|line| line.contains('|')) {
            return self.stable_lines;
        }
        let lines = &self.lines[self.stable_lines..];
        let mut settled = lines.len().saturating_sub(1);
        for more in CONTINUATIONS {
            if settled == 0 {
                break;
            }
            let other = self.rendered(&format!("{tail}{more}"));
            let same = lines.iter().zip(&other).take_while(|(a, b)| a.as_str() == b.as_str());
            settled = settled.min(same.count());
        }
        self.stable_lines + settled
    }

    fn render(&mut self) {
        let tail = &self.text[self.stable..];
        let (last, defines) = last_block(tail);
        if defines || self.has_definitions {
            self.has_definitions = true;
            (self.stable, self.stable_lines) = (0, 0);
            self.lines = self.rendered(&self.text);
            return;
        }
        self.lines.truncate(self.stable_lines);
        if last > 0 {
            let settled = self.rendered(&tail[..last]);
            self.add(settled);
            self.stable += last;
            self.stable_lines = self.lines.len();
        }
        let tail = self.rendered(&self.text[self.stable..]);
        self.add(tail);
    }

    fn rendered(&self, text: &str) -> Vec<Text> {
        Renderer::new(self.width).render(text)
    }

    fn add(&mut self, lines: Vec<Text>) {
        if !self.lines.is_empty() && !lines.is_empty() {
            self.lines.push(Text::new());
        }
        self.lines.extend(lines);
    }
}

/// Returns the start of the last top-level block that cannot merge with the one before it, and
/// whether the text defines links.
fn last_block(text: &str) -> (usize, bool) {
    let parser = Parser::new_ext(text, OPTIONS);
    let defines = parser.reference_definitions().iter().next().is_some();
    let (mut depth, mut last) = (0_usize, 0);
    for (event, range) in parser.into_offset_iter() {
        // A block with an incomplete first line may still merge with the one before it (`#` of
        // `#1`). A table may do so until its second line is complete.
        let lines = if matches!(event, Event::Start(Tag::Table(_))) { 2 } else { 1 };
        if depth == 0 && text[range.start..].matches('\n').nth(lines - 1).is_some() {
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    // Earlier text on the line may belong to the block, such as the spaces before indented code.
    (text[..last].rfind('\n').map_or(0, |end| end + 1), defines)
}
