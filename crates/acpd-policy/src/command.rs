//! The commands of a tool call.

use std::cell::OnceCell;

use crate::members::is_known_shell;
use crate::place::IS_WINDOWS;
use crate::readings::Readings;

/// A command that is to run.
#[derive(Debug)]
pub(crate) struct Command {
    /// The whole line; a list of arguments is quoted.
    pub(crate) line: String,
    /// The script of `bash -lc SCRIPT`, else the line itself.
    pub(crate) runs: String,
    readings: OnceCell<Readings>,
}

impl Command {
    /// Reads a line for a shell. Returns `None` if it is blank.
    pub(crate) fn line(line: &str) -> Option<Self> {
        let line = trimmed(line);
        // Expansions of the outer shell could become part of the script.
        let is_literal = !IS_WINDOWS && !line.contains(|c: char| c == '$' || c.is_control());
        let words = is_literal.then(|| shlex::split(line)).flatten();
        Self::new(line, words.as_deref().and_then(trusted_script).unwrap_or(line))
    }

    /// Reads a list of arguments. Returns `None` if it is empty or cannot be quoted.
    pub(crate) fn words(words: &[String]) -> Option<Self> {
        let line = shlex::try_join(words.iter().map(String::as_str)).ok()?;
        Self::new(&line, trusted_script(words).unwrap_or(&line))
    }

    /// Reads a program, or the start of a line, with a list of arguments.
    pub(crate) fn program(program: &str, args: &[String]) -> Option<Self> {
        let args = shlex::try_join(args.iter().map(String::as_str)).ok()?;
        Self::line(&format!("{program} {args}"))
    }

    fn new(line: &str, runs: &str) -> Option<Self> {
        let (line, runs) = (line.to_owned(), runs.to_owned());
        (!line.is_empty()).then_some(Self { line, runs, readings: OnceCell::new() })
    }

    /// Returns what a cautious rule looks at.
    pub(crate) fn readings(&self) -> &Readings {
        self.readings.get_or_init(|| Readings::of(&self.line))
    }
}

/// Returns the line without what a shell skips at its ends. All other space is a part of a word to a shell:
/// `git status` with a carriage return behind it runs something else.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\n'])
}

/// Returns the script of `SHELL -FLAGS… -c SCRIPT`, if it is all that runs and the shell is a known one.
fn trusted_script(words: &[String]) -> Option<&str> {
    let [shell, flags @ .., script] = words else { return None };
    let is_flag = |word: &String| {
        word.strip_prefix('-').is_some_and(|f| f.chars().all(|c| c.is_ascii_alphabetic()))
    };
    let takes_script = flags.iter().all(is_flag) && flags.last()?.ends_with('c');
    let is_trusted = takes_script && is_known_shell(shell) && !script.starts_with('-');
    Some(trimmed(script)).filter(|script| is_trusted && !script.is_empty())
}
