//! Command lines as bash reads them, parsed by the crate `rable`.
//!
//! The parser is recursive, so long and possibly deep lines are not parsed.
//!
//! Architecture invariant: the parser alone is not trusted. Its results only add to what a cautious
//! rule sees, unparsed text leads to a question, and a wildcard allows only one plain command.

mod runner;
mod word;

use rable::{Node, NodeKind};

pub(crate) use runner::{
    SHELLS, adds_arguments, base, inner_commands, is_finder, is_open, launching_words, parts,
    runs_others, without_git_options,
};
pub(crate) use word::{UNKNOWN, Word};

const MOST_BYTES: usize = 16 * 1024;
/// Words and signs that could open another level of commands. They limit the depth and so the
/// parser's stack.
const MOST_OPENERS: usize = 96;
/// Openers of substitutions. The parser's time grows with the cube of their depth.
const MOST_SUBSTITUTIONS: usize = 16;
/// Signs that could open another level of a sum or a condition.
const MOST_OPERATORS: usize = 192;

#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Every simple command at any depth: in lists, compound commands, functions, substitutions.
    pub(crate) commands: Vec<Simple>,
    /// The parser left text that could run commands.
    pub(crate) is_cut: bool,
}

/// A command with its arguments, without redirections.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Word>,
    pub(crate) words: Vec<Word>,
}

pub(crate) fn parse(line: &str) -> Option<Line> {
    let nodes = nodes(line)?;
    let mut line = Line::default();
    let mut open: Vec<&Node> = nodes.iter().collect();
    while let Some(node) = open.pop() {
        line.visit(node, &mut open);
    }
    Some(line)
}

/// Returns the command of a line without substitutions, patterns, redirections and comments.
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

/// Returns whether every shell of Windows reads the line as one program with arguments. Agents
/// there use bash, cmd.exe or PowerShell, and calls do not name the shell.
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
    if may_be_parsed(line) { rable::parse(line, false).ok() } else { None }
}

/// Checks the limits. Signs in quotation marks count as well.
fn may_be_parsed(line: &str) -> bool {
    let count = |signs: &[&str]| signs.iter().map(|sign| line.matches(sign).count()).sum::<usize>();
    let is_keyword = |word: &&str| {
        matches!(
            *word,
            "if" | "while" | "until" | "for" | "case" | "select" | "function" | "coproc"
        )
    };
    let keywords = line.split(|c: char| !c.is_ascii_alphabetic()).filter(is_keyword).count();
    // A nested backtick has a backslash before it.
    let substitutions = count(&["$(", "<(", ">(", "\\`"]);
    let has_sums = count(&["((", "$[", "[["]) > 0;
    let operators = if has_sums { count(&["?", "=", "!", "~", "-", "+", "*"]) } else { 0 };
    line.len() <= MOST_BYTES
        && keywords + count(&["(", "{"]) + substitutions <= MOST_OPENERS
        && substitutions <= MOST_SUBSTITUTIONS
        && operators <= MOST_OPERATORS
}

impl Simple {
    fn of(assignments: &[Node], words: &[Node]) -> Self {
        let words_of = |nodes: &[Node]| nodes.iter().map(Word::of).collect();
        Self { assignments: words_of(assignments), words: words_of(words) }
    }

    /// Returns the texts, assignments first.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.assignments.iter().chain(&self.words).map(|word| &*word.text).collect()
    }
}

impl Line {
    fn visit<'a>(&mut self, node: &'a Node, open: &mut Vec<&'a Node>) {
        use NodeKind as K;
        match &node.kind {
            K::Command { assignments, words, redirects } => {
                self.commands.push(Simple::of(assignments, words));
                open.extend(assignments.iter().chain(words).chain(redirects));
            }
            K::Word { parts, .. } => {
                self.is_cut |= Word::of(node).is_cut;
                open.extend(parts);
            }
            K::ParamExpansion { param: text, arg, .. }
            | K::ParamIndirect { param: text, arg, .. } => {
                self.is_cut |= [text].into_iter().chain(arg).any(|text| may_substitute(text));
            }
            K::HereDoc { content: text, quoted: false, .. }
            | K::CondTerm { value: text, .. }
            | K::ParamLength { param: text } => self.is_cut |= may_substitute(text),
            K::Pipeline { commands: inside, .. } | K::Array { elements: inside } => {
                open.extend(inside);
            }
            K::List { items } => open.extend(items.iter().map(|item| &item.command)),
            K::If { condition, then_body, else_body, redirects } => {
                open.extend([&**condition, then_body]);
                open.extend(else_body.as_deref().into_iter().chain(redirects));
            }
            K::While { condition, body, redirects } | K::Until { condition, body, redirects } => {
                open.extend([&**condition, body]);
                open.extend(redirects);
            }
            K::For { words, body, redirects, .. } | K::Select { words, body, redirects, .. } => {
                open.push(body);
                open.extend(words.iter().flatten().chain(redirects));
            }
            K::Case { word, patterns, redirects } => {
                open.push(word);
                open.extend(redirects);
                for pattern in patterns {
                    open.extend(pattern.patterns.iter().chain(&pattern.body));
                }
            }
            K::Subshell { body, redirects }
            | K::BraceGroup { body, redirects }
            | K::ConditionalExpr { body, redirects } => {
                open.push(body);
                open.extend(redirects);
            }
            K::Redirect { target: inside, .. }
            | K::Function { body: inside, .. }
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
            // These are read with their word.
            K::WordLiteral { .. } | K::AnsiCQuote { .. } | K::LocaleString { .. } => {}
            K::ArithmeticExpansion { expression: Some(_) } => {}
            K::HereDoc { .. } | K::BraceExpansion { .. } | K::Comment { .. } | K::Empty => {}
            // Loops over sums, and sums that the parser cannot read.
            _ => self.is_cut = true,
        }
    }
}

fn may_substitute(text: &str) -> bool {
    ["`", "$(", "<(", ">("].iter().any(|opener| text.contains(opener))
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
