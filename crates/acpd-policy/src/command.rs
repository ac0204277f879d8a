//! The commands of a tool call.

use crate::members::is_known_shell;
use crate::place::IS_WINDOWS;
use crate::readings::{Readings, Script, Text, script};
use crate::shell::is_plain_program;

/// A command that is to run.
#[derive(Debug)]
pub(crate) struct Command {
    /// The whole line; a list of arguments is quoted.
    line: Text,
    /// What runs: the script of `bash -lc SCRIPT`, else the line itself.
    pub(crate) runs: String,
}

impl Command {
    /// A line for a shell. Nothing if it is blank.
    pub(crate) fn line(line: &str) -> Option<Self> {
        let line = trimmed(line);
        // What the outer shell expands could become part of the script.
        let is_literal = !line.contains(|c: char| c == '$' || c.is_control());
        let is_literal = is_literal && (!IS_WINDOWS || is_plain_program(line));
        let words = is_literal.then(|| shlex::split(line)).flatten();
        Self::new(line, words.as_deref().and_then(trusted_script).unwrap_or(line))
    }

    /// A list of arguments. Nothing if it is empty or cannot be quoted.
    pub(crate) fn words(words: &[String]) -> Option<Self> {
        let line = shlex::try_join(words.iter().map(String::as_str)).ok()?;
        Self::new(&line, trusted_script(words).unwrap_or(&line))
    }

    /// A program, or the start of a line, with arguments beside it.
    pub(crate) fn program(program: &str, args: &[String]) -> Option<Self> {
        let args = shlex::try_join(args.iter().map(String::as_str)).ok()?;
        Self::line(&format!("{program} {args}"))
    }

    fn new(line: &str, runs: &str) -> Option<Self> {
        let (line, runs) = (Text::new(line.to_owned()), runs.to_owned());
        (!line.as_str().is_empty()).then_some(Self { line, runs })
    }

    /// The whole line; a list of arguments is quoted.
    pub(crate) fn as_line(&self) -> &str {
        self.line.as_str()
    }

    /// What a cautious rule looks at.
    pub(crate) fn readings(&self) -> &Readings {
        self.line.readings()
    }
}

/// The line without what a shell skips at its ends. All other space is a part of a word to a shell: `git status` with
/// a carriage return behind it runs something else.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\n'])
}

/// The script, if it is all that runs and its shell is a known one.
fn trusted_script(words: &[String]) -> Option<&str> {
    let Script { shell, text, is_all } = script(words)?;
    Some(trimmed(text)).filter(|text| is_all && is_known_shell(shell) && !text.is_empty())
}
