use std::cell::OnceCell;

use crate::members::is_known_shell;
use crate::place::IS_WINDOWS;
use crate::readings::Readings;

/// A command of a tool call.
#[derive(Debug)]
pub struct Command {
    /// The whole line. A list of arguments is quoted.
    pub(crate) line: String,
    /// The script of `bash -lc SCRIPT`, else the line.
    pub runs: String,
    readings: OnceCell<Readings>,
}

impl Command {
    /// Returns `None` for a blank line.
    pub(crate) fn line(line: &str) -> Option<Self> {
        let line = trimmed(line);
        // Expansions of the outer shell could change the script.
        let is_literal = !IS_WINDOWS && !line.contains(|c: char| c == '$' || c.is_control());
        let words = is_literal.then(|| shlex::split(line)).flatten();
        Self::new(line, words.as_deref().and_then(trusted_script).unwrap_or(line))
    }

    /// Returns `None` if the list is empty or cannot be quoted.
    pub(crate) fn words(words: &[String]) -> Option<Self> {
        let line = shlex::try_join(words.iter().map(String::as_str)).ok()?;
        Self::new(&line, trusted_script(words).unwrap_or(&line))
    }

    /// Reads a program, or the beginning of a line, with a list of arguments.
    pub(crate) fn program(program: &str, args: &[String]) -> Option<Self> {
        let args = shlex::try_join(args.iter().map(String::as_str)).ok()?;
        Self::line(&format!("{program} {args}"))
    }

    fn new(line: &str, runs: &str) -> Option<Self> {
        let (line, runs) = (line.to_owned(), runs.to_owned());
        (!line.is_empty()).then_some(Self { line, runs, readings: OnceCell::new() })
    }

    pub(crate) fn readings(&self) -> &Readings {
        self.readings.get_or_init(|| Readings::of(&self.line))
    }
}

/// Removes only the space that shells skip. Other space belongs to words: `git status` with a
/// carriage return runs something else.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\n'])
}

/// Returns the script of `SHELL -FLAGS… -c SCRIPT`, if the shell is known and nothing else runs.
fn trusted_script(words: &[String]) -> Option<&str> {
    let [shell, flags @ .., script] = words else { return None };
    let is_flag = |word: &String| {
        word.strip_prefix('-').is_some_and(|f| f.chars().all(|c| c.is_ascii_alphabetic()))
    };
    let takes_script = flags.iter().all(is_flag) && flags.last()?.ends_with('c');
    let is_trusted = takes_script && is_known_shell(shell) && !script.starts_with('-');
    Some(trimmed(script)).filter(|script| is_trusted && !script.is_empty())
}
