//! Command lines: what a shell would make of them, as far as safety needs to know.

use std::collections::BTreeSet;

/// Shells whose `-c SCRIPT` is looked into.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
/// Where a shell is believed to be a shell.
const SHELL_FOLDERS: [&str; 5] =
    ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/run/current-system/sw/bin/"];

/// The first character that lets a line do more than run one program: control operators,
/// redirections, substitutions and everything that ends a line.
///
/// Quotes are not taken into account: what is quoted for one shell is not for another. Any
/// parenthesis counts, since `(…)` alone is a substitution in fish.
pub(crate) fn operator(line: &str) -> Option<char> {
    line.chars().find(|&c| is_operator(c))
}

fn is_operator(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`') || (c.is_control() && c != '\t')
}

/// A command that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The whole line; a list of arguments is quoted.
    pub(crate) line: String,
    /// What runs: the script of `bash -lc SCRIPT`, else the line itself.
    pub(crate) runs: String,
}

impl Command {
    /// A line for a shell. Nothing if it is blank.
    pub(crate) fn line(line: &str) -> Option<Self> {
        let line = line.trim();
        // What the outer shell expands could become part of the script.
        let is_literal = !line.contains(|c: char| c == '$' || c.is_control());
        let words = is_literal.then(|| shlex::split(line)).flatten();
        let runs = words.as_deref().and_then(trusted_script).unwrap_or(line).to_owned();
        Some(Self { line: line.to_owned(), runs }).filter(|command| !command.line.is_empty())
    }

    /// A list of arguments. Nothing if it is empty or cannot be quoted.
    pub(crate) fn words(words: &[String]) -> Option<Self> {
        let line = shlex::try_join(words.iter().map(String::as_str)).ok()?;
        let runs = trusted_script(words).unwrap_or(&line).to_owned();
        Some(Self { line, runs }).filter(|command| !command.line.is_empty())
    }

    /// A program, or the start of a line, with arguments beside it.
    pub(crate) fn program(program: &str, args: &[String]) -> Option<Self> {
        let args = shlex::try_join(args.iter().map(String::as_str)).ok()?;
        Self::line(&format!("{program} {args}"))
    }
}

/// Every way to read the line that a cautious rule looks at: the whole, its parts between shell
/// operators, the scripts in them, all also with single spaces.
pub(crate) fn readings(line: &str) -> BTreeSet<String> {
    let mut readings = BTreeSet::new();
    let mut open = vec![line.trim().to_owned()];
    while let Some(line) = open.pop() {
        if line.is_empty() || readings.contains(&line) {
            continue;
        }
        if let Some(words) = shlex::split(&line)
            && let Some(script) = script(&words)
        {
            open.push(script.text.trim().to_owned());
        }
        let parts = line.split(is_operator);
        open.extend(parts.map(|part| part.trim().trim_end_matches('$').trim_end().to_owned()));
        open.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
        readings.insert(line);
    }
    readings
}

struct Script<'a> {
    shell: &'a str,
    text: &'a str,
    /// Nothing follows the script.
    is_all: bool,
}

/// Finds the script in `SHELL -FLAGS… -c SCRIPT`.
fn script(words: &[String]) -> Option<Script<'_>> {
    let (shell, rest) = words.split_first()?;
    let name = shell.rsplit(['/', '\\']).next()?;
    if !SHELLS.contains(&name) {
        return None;
    }
    let is_flag = |word: &String| {
        word.strip_prefix('-').is_some_and(|f| f.chars().all(|c| c.is_ascii_alphabetic()))
    };
    let flags = rest.iter().take_while(|word| is_flag(word)).count();
    let takes_script = rest[..flags].last()?.ends_with('c');
    let text = rest.get(flags).filter(|_| takes_script)?;
    Some(Script { shell, text, is_all: rest.len() == flags + 1 })
}

/// The script, if it is all that runs and its shell is a known one.
fn trusted_script(words: &[String]) -> Option<&str> {
    let Script { shell, text, is_all } = script(words)?;
    let name = SHELL_FOLDERS.iter().find_map(|folder| shell.strip_prefix(folder));
    let is_known = SHELLS.contains(&name.unwrap_or(shell));
    Some(text.trim()).filter(|text| is_all && is_known && !text.is_empty())
}
