//! Command lines as a shell reads them.
//!
//! The grammar is that of bash, read by the crate `rable`. It recurses with each level, so a line is
//! measured before, and one that is too long or could be too deep counts as not parsed.
//!
//! Architecture invariant: nobody trusts the parser alone. What it finds can only add to what a
//! cautious rule sees, and what it does not see as one plain command is not allowed by a wildcard.

mod runner;
mod word;

use rable::{Node, NodeKind};

pub(crate) use runner::{
    Role, SHELLS, aliases, base, inner_commands, join, lines_in, role, runs_input, script,
    without_blanks_around_unknown, without_git_options,
};
pub(crate) use word::{UNKNOWN, Word};

/// The longest line that is parsed.
const MOST_BYTES: usize = 16 * 1024;
/// The most words and signs in a line that could open one more level of commands: a bound of its depth,
/// and so of the stack that the parser takes.
const MOST_OPENERS: usize = 96;
/// The most of them that begin a substitution: the time that the parser takes grows with the cube of how
/// deep these are.
const MOST_SUBSTITUTIONS: usize = 16;
/// The most signs that could open one more level of a sum or a condition.
const MOST_OPERATORS: usize = 192;
/// The most ends that are tried for a substitution in a text.
const MOST_TRIES: usize = 8;

/// Everything that could run in a line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Every simple command, however deep: in lists, compound commands, functions, substitutions.
    pub(crate) commands: Vec<Simple>,
    /// What is given to commands to read: here-documents and here-strings.
    pub(crate) inputs: Vec<String>,
    /// Lines in texts that the parser leaves as they are.
    pub(crate) inner: Vec<String>,
    /// Whether where such a line ends could not be told.
    pub(crate) is_cut: bool,
}

/// A command with its arguments, without redirections.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    /// The assignments before it.
    pub(crate) assignments: Vec<Word>,
    /// The command and its arguments.
    pub(crate) words: Vec<Word>,
    /// Whether it reads nothing but a here-document or here-string of its own.
    pub(crate) is_fed: bool,
}

/// What could run in the line. Nothing if it cannot be parsed.
pub(crate) fn parse(line: &str) -> Option<Line> {
    Some(Line::of(&nodes(line)?))
}

/// The line, if it is one command without substitutions, patterns, redirections and comments.
pub(crate) fn plain_command(line: &str) -> Option<Simple> {
    let nodes = nodes(line)?;
    let [Node { kind: NodeKind::Command { assignments, words, redirects }, span }] = &*nodes else {
        return None;
    };
    let is_all = span.start == 0 && span.end == line.chars().count();
    let simple = Simple::of(assignments, words);
    let is_plain = simple.assignments.iter().chain(&simple.words).all(|word| word.is_plain);
    (is_all && is_plain && redirects.is_empty() && !words.is_empty()).then_some(simple)
}

/// Returns whether every shell of Windows reads the line as one program with arguments. An agent there has
/// bash, cmd.exe or PowerShell, and no call says which.
pub(crate) fn is_plain_program(line: &str) -> bool {
    let program = line.split(' ').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_shell = ["cmd", "powershell", "pwsh"].contains(&&*program.to_ascii_lowercase());
    program.starts_with(|c: char| c.is_ascii_alphanumeric())
        && program.chars().all(is_name)
        && !is_shell
        && line.chars().all(|c| c.is_alphanumeric() || " _./:=+-".contains(c))
}

fn nodes(line: &str) -> Option<Vec<Node>> {
    let is_small = line.len() <= MOST_BYTES
        && openers(line) <= MOST_OPENERS
        && substitution_openers(line) <= MOST_SUBSTITUTIONS
        && operators(line) <= MOST_OPERATORS;
    if is_small { rable::parse(line, false).ok() } else { None }
}

/// How many levels of commands the line could have, whatever is quoted.
fn openers(line: &str) -> usize {
    let is_keyword = |word: &&str| {
        matches!(
            *word,
            "if" | "while" | "until" | "for" | "case" | "select" | "function" | "coproc"
        )
    };
    let words = line.split(|c: char| !c.is_ascii_alphabetic()).filter(is_keyword).count();
    words + line.matches(['(', '{']).count() + substitution_openers(line)
}

/// How many levels of substitutions; a backtick in backticks has a backslash before it.
fn substitution_openers(line: &str) -> usize {
    ["$(", "<(", ">(", "\\`"].iter().map(|opener| line.matches(opener).count()).sum()
}

/// How many levels of sums and conditions.
fn operators(line: &str) -> usize {
    let has_some = ["((", "$[", "[["].iter().any(|opener| line.contains(opener));
    if has_some { line.matches(['?', '=', '!', '~', '-', '+', '*']).count() } else { 0 }
}

impl Simple {
    fn of(assignments: &[Node], words: &[Node]) -> Self {
        let words_of = |nodes: &[Node]| nodes.iter().map(Word::of).collect();
        Self { assignments: words_of(assignments), words: words_of(words), is_fed: false }
    }
}

impl Line {
    fn of(nodes: &[Node]) -> Self {
        let mut line = Self::default();
        let mut open: Vec<&Node> = nodes.iter().collect();
        while let Some(node) = open.pop() {
            line.visit(node, &mut open);
        }
        line
    }

    fn inner_of(&mut self, text: &str) {
        let mut rest = text;
        while let Some((opener, inside)) = first_opener(rest) {
            let ends = Ends::of(opener, inside);
            // An end that is a guess is no end where it could be that of a here-document.
            self.is_cut |= ends.parsed.is_none() && inside.contains("<<");
            let found = ends.parsed.or(ends.last);
            self.inner.extend(found.map(|inside| inside.replace("\\`", "`")));
            rest = ends.parsed.map_or(inside, |parsed| &inside[parsed.len()..]);
        }
    }

    /// Takes what the node itself says; what is inside it becomes open.
    fn visit<'a>(&mut self, node: &'a Node, open: &mut Vec<&'a Node>) {
        use NodeKind as K;
        match &node.kind {
            K::Command { assignments, words, redirects } => {
                let is_fed = is_fed(redirects);
                self.commands.push(Simple { is_fed, ..Simple::of(assignments, words) });
                open.extend(assignments.iter().chain(words).chain(redirects));
            }
            K::Word { value, parts, .. } => {
                let is_text =
                    |part: &Node| matches!(part.kind, K::ArithmeticExpansion { expression: None });
                if parts.iter().any(is_text) {
                    self.inner_of(value);
                }
                open.extend(parts);
            }
            K::WordLiteral { value } => match whole_substitution(value) {
                Some(inside) => self.inner.push(inside.to_owned()),
                None => self.inner_of(value),
            },
            K::CondTerm { value, .. } => self.inner_of(value),
            K::ParamExpansion { param, arg, .. } | K::ParamIndirect { param, arg, .. } => {
                self.inner_of(param);
                self.inner_of(arg.as_deref().unwrap_or_default());
            }
            K::ParamLength { param } => self.inner_of(param),
            K::Pipeline { commands, .. } => open.extend(commands),
            K::List { items } => open.extend(items.iter().map(|item| &item.command)),
            K::If { condition, then_body, else_body, redirects } => {
                open.extend([&**condition, then_body]);
                open.extend(else_body.as_deref());
                open.extend(redirects);
            }
            K::While { condition, body, redirects } | K::Until { condition, body, redirects } => {
                open.extend([&**condition, body]);
                open.extend(redirects);
            }
            K::For { words, body, redirects, .. } | K::Select { words, body, redirects, .. } => {
                open.extend(words.iter().flatten().chain(redirects));
                open.push(body);
            }
            K::ForArith { init, cond, incr, body, redirects } => {
                for sum in [init, cond, incr] {
                    self.inner_of(sum);
                }
                open.push(body);
                open.extend(redirects);
            }
            K::Case { word, patterns, redirects } => {
                open.push(word);
                for pattern in patterns {
                    open.extend(pattern.patterns.iter().chain(&pattern.body));
                }
                open.extend(redirects);
            }
            K::Subshell { body, redirects }
            | K::BraceGroup { body, redirects }
            | K::ConditionalExpr { body, redirects } => {
                open.push(body);
                open.extend(redirects);
            }
            K::ArithmeticCommand { raw_content, redirects, .. } => {
                self.inner_of(raw_content);
                open.extend(redirects);
            }
            K::Redirect { op, target, .. } => {
                if op == "<<<" {
                    self.inputs.push(Word::of(target).text);
                }
                open.push(target);
            }
            K::HereDoc { content, quoted, .. } => {
                let fills_in = !quoted && content.contains(['$', '`']);
                self.inputs.extend(fills_in.then(|| UNKNOWN.to_string()));
                self.inputs.push(content.clone());
                if !quoted {
                    self.inner_of(content);
                }
            }
            K::Function { body: inside, .. }
            | K::Coproc { command: inside, .. }
            | K::CommandSubstitution { command: inside, .. }
            | K::ProcessSubstitution { command: inside, .. }
            | K::UnaryTest { operand: inside, .. }
            | K::CondNot { operand: inside }
            | K::CondParen { inner: inside }
            | K::Negation { pipeline: inside }
            | K::Time { pipeline: inside, .. } => open.push(inside),
            K::BinaryTest { left, right, .. }
            | K::CondAnd { left, right }
            | K::CondOr { left, right } => open.extend([&**left, right]),
            K::Array { elements } => open.extend(elements),
            // Comments, quotes, and the parts of sums, which were taken as text.
            _ => {}
        }
    }
}

/// Returns whether one redirection gives a command all that it reads, as text of the line.
fn is_fed(redirects: &[Node]) -> bool {
    let is_input = |node: &&Node| match &node.kind {
        NodeKind::HereDoc { .. } => true,
        NodeKind::Redirect { op, .. } => op.starts_with('<'),
        _ => true,
    };
    let is_text = |node: &Node| match &node.kind {
        NodeKind::HereDoc { fd, .. } => *fd <= 0,
        NodeKind::Redirect { op, fd, varfd, .. } => op == "<<<" && *fd <= 0 && varfd.is_none(),
        _ => false,
    };
    let inputs: Vec<&Node> = redirects.iter().filter(is_input).collect();
    matches!(*inputs, [only] if is_text(only))
}

/// What runs in a literal that is one substitution. The parser leaves a substitution as text if it is
/// deeper than the third.
fn whole_substitution(literal: &str) -> Option<&str> {
    let inside = ["$(", "<(", ">("].iter().find_map(|opener| literal.strip_prefix(opener))?;
    inside.strip_suffix(')')
}

/// What runs in a substitution of a text, as far as that can be told.
struct Ends<'a> {
    /// Up to the first end before which all can be parsed.
    parsed: Option<&'a str>,
    /// Up to the last end.
    last: Option<&'a str>,
}

impl<'a> Ends<'a> {
    fn of(opener: &str, inside: &'a str) -> Self {
        let closer = if opener == "`" { '`' } else { ')' };
        // `$((…))` is a sum, `$((…) )` is not.
        let is_sum = |inside: &str| inside.starts_with('(') && inside.ends_with(')');
        let mut ends = inside
            .match_indices(closer)
            .map(|(end, _)| &inside[..end])
            .filter(|inside| !is_sum(inside) && !inside.ends_with('\\'));
        let last = ends.clone().next_back();
        let mut tries = last.into_iter().chain(ends.by_ref().take(MOST_TRIES));
        let parsed = tries.find(|inside| nodes(inside).is_some() && !is_in_here_document(inside));
        Self { parsed, last }
    }
}

/// Whether the text, which can be parsed, ends within a here-document: what cannot follow a command can
/// follow it.
fn is_in_here_document(text: &str) -> bool {
    text.contains("<<") && nodes(&format!("{text}\n)")).is_some()
}

/// The first opener of a substitution, and the text behind it.
fn first_opener(text: &str) -> Option<(&str, &str)> {
    let at = text.char_indices().find_map(|(at, c)| {
        let is_opener = c == '`' || "$<>".contains(c) && text[at + 1..].starts_with('(');
        is_opener.then_some(at)
    })?;
    let length = if text[at..].starts_with('`') { 1 } else { 2 };
    Some((&text[at..at + length], &text[at + length..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_plain_program;

    #[test]
    fn plain_program_has_no_sign_of_any_shell() {
        for line in ["git status -s", "cargo test --manifest-path=crates/a/Cargo.toml größe.c"] {
            assert!(is_plain_program(line), "{line}");
        }
        for line in [
            "",
            "-x",
            "cmd /c git",
            "PowerShell git",
            "pwsh",
            "git.exe x",
            "bin/tool x",
            r"bin\tool x",
            "\"git\" x",
            "X=1 git x",
            "git commit -m 'a'",
            "git commit -m \"a\"",
            "echo a\tb",
            "echo a\nb",
            "echo a\u{a0}b",
            "echo \u{2013}x",
        ] {
            assert!(!is_plain_program(line), "{line}");
        }
        for sign in "@^`&%!$#,;|<>()[]{}~*?'\"\\".chars() {
            assert!(!is_plain_program(&format!("echo a{sign}b")), "{sign}");
        }
    }

    proptest! {
        #[test]
        fn plain_program_that_bash_reads_has_these_words(
            line in "[a-z]{1,4} [a-zA-Z0-9_.:/=+@\"\\\\,'#%$^!;&|`(){}<> -]{0,8}",
        ) {
            // Bash has words of its own, such as `fi`; in other shells `=ls` is a path.
            if is_plain_program(&line)
                && let Some(simple) = super::plain_command(line.trim_end())
            {
                let words: Vec<&str> = line.split_whitespace().collect();
                let read: Vec<_> = simple.words.into_iter().map(|word| word.text).collect();
                prop_assert_eq!(read, words);
            }
        }
    }
}
