//! Readings of a command line: all texts that `reject` and `ask` rules compare.
//!
//! They are the line, every command that bash would parse, and commands inside commands that run
//! others ([`shell::launching_words`]). A shell may run fewer: every argument that could begin a
//! command counts.

use std::collections::BTreeSet;
use std::iter;

use crate::shell::{self, UNKNOWN};

/// Maximum text of all readings.
const MOST_BYTES: usize = 64 * 1024;

/// Maximum text that is compared from each word on, in bytes: enough for a page of prose in an
/// unknown member.
const MOST_INNER_BYTES: usize = 1 << 23;

/// Readings of a line, each once. [`UNKNOWN`] stands for a shell expansion.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Readings {
    pub(crate) texts: BTreeSet<String>,
    /// There are more: the line, or a script in it, could not be read completely.
    pub(crate) is_cut: bool,
}

impl Readings {
    pub(crate) fn of(line: &str) -> Self {
        let mut finder = Finder { left: MOST_BYTES, ..Finder::default() };
        finder.found_line(line);
        while let Some(line) = finder.open.pop() {
            finder.read(&line);
        }
        finder.readings
    }
}

#[derive(Debug, Default)]
struct Finder {
    readings: Readings,
    open: Vec<String>,
    seen: BTreeSet<String>,
    left: usize,
}

impl Finder {
    /// Returns whether any bytes are left.
    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes + 1) {
            Some(left) => self.left = left,
            None => (self.left, self.readings.is_cut) = (0, true),
        }
        self.left > 0
    }

    fn found(&mut self, text: String) {
        if self.take(text.len()) {
            self.readings.texts.insert(text);
        }
    }

    fn found_line(&mut self, line: &str) {
        let line = line.trim();
        if !line.is_empty() && !self.seen.contains(line) && self.take(line.len()) {
            self.seen.insert(line.to_owned());
            self.open.push(line.to_owned());
        }
    }

    fn read(&mut self, line: &str) {
        self.found(line.to_owned());
        if line.contains(UNKNOWN) {
            // The shell may insert any command here.
            self.found(UNKNOWN.to_string());
        }
        let Some(parsed) = shell::parse(line) else {
            self.readings.is_cut = true;
            return;
        };
        self.readings.is_cut |= parsed.is_cut;
        for command in &parsed.commands {
            let words = command.texts();
            self.found(words.join(" "));
            let words = &words[command.assignments.len()..];
            self.command(words);
            self.inner_commands(words);
        }
    }

    /// Adds a command, also without the folder of its program.
    fn command(&mut self, words: &[&str]) {
        let Some((program, args)) = words.split_first() else { return };
        self.found(words.join(" "));
        self.found([&[&*shell::base(program)], args].concat().join(" "));
        if let Some(words) = shell::without_git_options(words) {
            self.found(words.join(" "));
        }
        if shell::is_open(words) {
            self.found(UNKNOWN.to_string());
        }
    }

    fn inner_commands(&mut self, words: &[&str]) {
        let Some(program) = words.first() else { return };
        // `time` is a reserved word in some shells, which leave its options here.
        let is_option = program.starts_with('-');
        let places =
            if is_option { (1..words.len()).collect() } else { shell::inner_commands(words) };
        let Some(first) = places.first().copied() else { return };
        for at in places {
            let inner = &words[at..];
            self.command(inner);
            if shell::adds_arguments(program) {
                let is_end = |word: &&str| matches!(*word, ";" | "+" | "{}" | ":::");
                let end = inner.iter().position(is_end).unwrap_or(inner.len());
                self.found(inner[..end].join(" ") + " \0");
            }
            if self.left == 0 {
                return;
            }
        }
        let is_line =
            |text: &&str| text.contains(|c: char| c.is_whitespace() || ";&|(`".contains(c));
        for line in words[first..].iter().flat_map(|word| shell::parts(word)).filter(is_line) {
            self.found_line(line);
        }
    }
}

/// Texts that a program could take for a command: from each word to the next operator, ignoring
/// quotes.
pub(crate) struct InnerTexts {
    parts: Vec<String>,
}

impl InnerTexts {
    /// Returns `None` if there is too much.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let unquoted = [" ", ""].map(|blank| line.replace(['"', '\'', '\\'], blank));
        let single = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts = unquoted.iter().flat_map(|text| text.split(is_operator)).map(single);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let bytes: usize = parts.iter().flat_map(|part| from_each_word(part)).map(str::len).sum();
        (bytes <= MOST_INNER_BYTES).then_some(Self { parts })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| from_each_word(part)).flat_map(shell::parts)
    }
}

fn from_each_word(part: &str) -> impl Iterator<Item = &str> {
    iter::successors(Some(part), |rest| Some(rest.split_once(' ')?.1))
}

/// Returns the first character that lets a line do more than run one program: control operators,
/// redirections, substitutions and line ends.
///
/// Quotes are ignored, because shells differ. Any parenthesis counts, because `(…)` is a
/// substitution in fish.
pub(crate) fn operator(line: &str) -> Option<char> {
    line.chars().find(|&c| is_operator(c))
}

fn is_operator(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`') || (c.is_control() && c != '\t')
}
