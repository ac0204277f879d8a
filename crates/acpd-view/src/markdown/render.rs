//! Markdown blocks as lines.

use acpd_api::escape;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::OPTIONS;
use super::table::Table;
use crate::about::disguised_host;
use crate::text;
use crate::text::{Role, Style, Text};

const CODE_INDENT: &str = "  ";
/// Code is indented only in more columns than this.
const MIN_ROOM: usize = 8;
const TAB_WIDTH: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Renderer {
    width: usize,
    lines: Vec<Text>,
    margins: Vec<Margin>,
    /// The number of margins before an empty line that precedes the next line.
    gap: Option<usize>,
    inline: Vec<Text>,
    style: Style,
    styles: Vec<Style>,
    /// Open links and pictures: the address, and the start of the text.
    links: Vec<(String, usize)>,
    /// Numbers of open lists; none for bullets.
    lists: Vec<Option<u64>>,
    code: Option<String>,
    table: Option<Table>,
}

#[derive(Debug)]
struct Margin {
    first: Option<Text>,
    rest: Text,
    has_lines: bool,
}

impl Renderer {
    pub(super) fn new(width: usize) -> Renderer {
        Renderer { width, ..Renderer::default() }
    }

    pub(super) fn render(mut self, text: &str) -> Vec<Text> {
        for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
            match event {
                Event::Start(tag) => self.start(tag, &text[range]),
                Event::End(tag) => self.end(tag),
                // HTML is shown as text.
                Event::Text(text) | Event::Html(text) => match &mut self.code {
                    Some(code) => code.push_str(&text),
                    None => self.text(&text),
                },
                Event::Code(code) => {
                    let style = Style { role: Role::Code, ..self.style };
                    self.put(style, &code);
                }
                Event::InlineHtml(html) => self.text(&html),
                // Agents mean their line breaks, for example in lists of files.
                Event::SoftBreak | Event::HardBreak => self.inline.push(Text::new()),
                Event::Rule => {
                    self.block();
                    let room = self.room().min(40);
                    self.write(Text::of(Role::Mark, Text::repeated("─", room)));
                }
                Event::TaskListMarker(is_done) => {
                    let mark = if is_done { "[x] " } else { "[ ] " };
                    *self.last_line() += Text::of(Role::Mark, mark);
                }
                // Not among the options.
                Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
            }
        }
        self.flush();
        self.lines
    }

    fn start(&mut self, tag: Tag<'_>, source: &str) {
        match tag {
            Tag::Paragraph => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                // Until its underline arrived, this heading was a paragraph: keep that look.
                if source.trim_start().starts_with('#') {
                    let marks = Text::repeated("#", level as usize) + " ";
                    *self.last_line() += Text::of(Role::Mark, marks);
                }
                self.push_style(Style::of(Role::Heading).strong());
            }
            Tag::BlockQuote(_) => {
                self.block();
                let bar = Text::of(Role::Mark, "│ ");
                self.margin(None, bar);
            }
            Tag::CodeBlock(_) | Tag::HtmlBlock => {
                self.block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                // A nested list directly follows its item's text.
                if self.margins.is_empty() || self.lists.is_empty() {
                    self.block();
                } else {
                    self.flush();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = text!("{}. ", *number);
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".into(),
                };
                let rest = Text::of(Role::Plain, Text::repeated(" ", mark.width()));
                self.margin(Some(Text::of(Role::Mark, mark)), rest);
            }
            Tag::Emphasis => self.push_style(Style { emphasis: true, ..self.style }),
            Tag::Strong => self.push_style(self.style.strong()),
            Tag::Strikethrough => self.push_style(Style { struck: true, ..self.style }),
            Tag::Link { dest_url, .. } => self.begin_link(dest_url.into_string()),
            Tag::Image { dest_url, .. } => {
                self.text("[image] ");
                self.begin_link(dest_url.into_string());
            }
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.inline.clear(),
            // Not among the options, or without a look of their own.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.pop_style();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                self.end_margin();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => self.code_block(tag == TagEnd::CodeBlock),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link | TagEnd::Image => {
                self.pop_style();
                self.end_link();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline).into_iter().collect();
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room()) {
                        self.write(line);
                    }
                }
            }
            _ => {}
        }
    }

    fn block(&mut self) {
        self.flush();
        let depth = self.margins.len();
        if self.margins.last().map_or(!self.lines.is_empty(), |margin| margin.has_lines) {
            self.gap = Some(depth);
        } else if self.gap.is_some_and(|gap| gap > depth) {
            self.gap = None;
        }
    }

    fn margin(&mut self, first: Option<Text>, rest: Text) {
        self.margins.push(Margin { first, rest, has_lines: false });
    }

    fn end_margin(&mut self) {
        // An empty item still takes a line.
        if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
            self.write(Text::new());
        }
        self.margins.pop();
    }

    fn room(&self) -> usize {
        let margins: usize = self.shown_margins().map(|margin| margin.rest.width()).sum();
        self.width.saturating_sub(margins).max(1)
    }

    /// The margins that fit: text matters more than the depth of quotes.
    fn shown_margins(&self) -> impl Iterator<Item = &Margin> {
        let mut used = 0;
        self.margins.iter().take_while(move |margin| {
            used += margin.rest.width();
            used <= self.width / 2
        })
    }

    fn write(&mut self, line: Text) {
        let shown = self.shown_margins().count();
        if let Some(depth) = self.gap.take() {
            let margins = self.margins[..depth.min(shown)].iter();
            let empty: Text = margins.map(|margin| margin.rest.clone()).collect();
            self.lines.push(empty.trim_end());
        }
        let mut whole = Text::new();
        for margin in &mut self.margins[..shown] {
            whole += margin.first.take().unwrap_or_else(|| margin.rest.clone());
        }
        for margin in &mut self.margins {
            (margin.first, margin.has_lines) = (None, true);
        }
        whole += line;
        self.lines.push(whole.trim_end());
    }

    fn flush(&mut self) {
        let lines = std::mem::take(&mut self.inline);
        if lines.iter().all(Text::is_empty) {
            return;
        }
        let room = self.room();
        for line in lines {
            for row in line.wrap(room) {
                self.write(row);
            }
        }
    }

    fn code_block(&mut self, is_code: bool) {
        let Some(code) = self.code.take() else { return };
        let role = if is_code { Role::Code } else { Role::Dim };
        let indent = if is_code && self.room() > MIN_ROOM { CODE_INDENT } else { "" };
        let room = self.room() - indent.len();
        let code = code.strip_suffix('\n').unwrap_or(&code);
        for line in code.split('\n') {
            let line = Text::of(role, escape::verbatim(&without_tabs(line)));
            for row in line.split(room) {
                self.write(Text::from(indent) + row);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.put(self.style, text);
    }

    fn put(&mut self, style: Style, text: &str) {
        let text = text.replace(['\n', '\t'], " ");
        *self.last_line() += Text::of(style, escape::prose(&text));
    }

    fn last_line(&mut self) -> &mut Text {
        if self.inline.is_empty() {
            self.inline.push(Text::new());
        }
        self.inline.last_mut().expect("there is one")
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(std::mem::replace(&mut self.style, style));
    }

    fn pop_style(&mut self) {
        self.style = self.styles.pop().unwrap_or_default();
    }

    fn inline_text(&self) -> String {
        self.inline.iter().map(Text::to_string).collect()
    }

    fn begin_link(&mut self, to: String) {
        self.push_style(Style { role: Role::Link, ..self.style });
        let start = self.inline_text().len();
        self.links.push((to, start));
    }

    /// Adds a link's address if it differs from the text, and a warning about a disguised host.
    fn end_link(&mut self) {
        let Some((to, start)) = self.links.pop() else { return };
        let said = self.inline_text();
        let shown = escape::prose(&to).to_string();
        let bare = shown.strip_prefix("mailto:").unwrap_or(&shown);
        if said.get(start..) != Some(bare) && said.get(start..) != Some(&shown) && !to.is_empty() {
            self.put(Style::of(Role::Dim), " (");
            self.put(Style::of(Role::Link), &to);
            self.put(Style::of(Role::Dim), ")");
        }
        if let Some(host) = disguised_host(&to) {
            self.put(Style::of(Role::Warning), &format!(" (leads to {host})"));
        }
    }
}

fn without_tabs(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut column = 0;
    for char in line.chars() {
        if char == '\t' {
            let spaces = TAB_WIDTH - column % TAB_WIDTH;
            plain.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            plain.push(char);
            column += unicode_width::UnicodeWidthChar::width(char).unwrap_or(0);
        }
    }
    plain
}
