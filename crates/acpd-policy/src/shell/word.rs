//! A word of a command line, without its quotes.

use rable::{Node, NodeKind, Span};

/// Stands for text that only the shell knows, possibly empty. No argument can contain it.
pub(crate) const UNKNOWN: char = '\0';

#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// Text without quotes, with [`UNKNOWN`] for each expansion.
    pub(crate) text: String,
    /// Only this text, in every shell.
    pub(crate) is_plain: bool,
    /// A part could run commands that the parser does not see.
    pub(super) is_cut: bool,
    /// End in the line, in characters.
    pub(crate) end: usize,
}

impl Word {
    pub(super) fn of(node: &Node) -> Self {
        let NodeKind::Word { value, parts, .. } = &node.kind else { return Self::default() };
        let mut reader = Reader::default();
        for part in parts {
            match &part.kind {
                NodeKind::WordLiteral { value } => reader.read(value),
                // Plain text in bash, but not in every shell.
                NodeKind::AnsiCQuote { decoded, .. } => {
                    reader.expands = true;
                    reader.text.push_str(decoded);
                }
                NodeKind::LocaleString { inner, .. } => {
                    reader.expands = true;
                    reader.quote = Some('"');
                    reader.read(inner);
                    reader.quote = None;
                }
                _ => reader.unknown(),
            }
        }
        if parts.is_empty() {
            reader.read(value);
        }
        let Span { end, .. } = node.span;
        let is_plain = !reader.expands && !reader.text.contains(UNKNOWN);
        Self { text: reader.text, is_plain, is_cut: reader.is_cut, end }
    }
}

/// Removes quotes, also across several parts of a word.
#[derive(Debug, Default)]
struct Reader {
    text: String,
    quote: Option<char>,
    expands: bool,
    is_cut: bool,
}

impl Reader {
    fn unknown(&mut self) {
        self.text.push(UNKNOWN);
        self.expands = true;
    }

    fn read(&mut self, literal: &str) {
        let mut rest = literal.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek().copied();
            match (self.quote, c) {
                (Some('\''), '\'') | (Some('"'), '"') => self.quote = None,
                (Some('\''), c) => self.text.push(c),
                (None, '\'' | '"') => self.quote = Some(c),
                (quote, '\\') => {
                    let escapes = |c| quote.is_none() || matches!(c, '$' | '`' | '"' | '\\' | '\n');
                    match rest.next_if(|c| escapes(*c)) {
                        Some('\n') => {}
                        Some(escaped) => self.text.push(escaped),
                        None => self.text.push('\\'),
                    }
                }
                // The parser left unread text.
                (quote, '`' | '$' | '<' | '>')
                    if c == '`'
                        || c == '$' && next.is_some_and(begins_expansion)
                        || c != '$' && quote.is_none() =>
                {
                    self.is_cut = true;
                    return self.unknown();
                }
                (Some(_), c) => self.text.push(c),
                (None, '*' | '?') => self.unknown(),
                // Shells differ in the end of a character class.
                (None, '[') => return self.unknown(),
                // Also in arguments that look like an assignment.
                (None, '~') if self.text.is_empty() || self.text.ends_with(['=', ':']) => {
                    while rest.next_if(|c| *c != '/').is_some() {}
                    self.unknown();
                }
                (None, c) => {
                    // In some shells `=ls` is a path and `{a}` is `a`.
                    let is_odd = matches!(c, '{' | '}') || (c == '=' && self.text.is_empty());
                    self.expands |= is_odd;
                    self.text.push(c);
                }
            }
        }
    }
}

fn begins_expansion(c: char) -> bool {
    c.is_ascii_alphanumeric() || "({[_@*#?-$!".contains(c)
}
