//! Readings of a command line: every text that a `reject` or `ask` rule compares.
//!
//! First the text: the whole, its parts between shell operators, the scripts in them, all also with
//! single blanks. Then the commands that a shell would run: every command in the parsed line, what runs inside
//! commands that run others ([`shell::role`]), the scripts of shells and what is fed to them. These are
//! more than a shell really runs: any argument that could begin a command counts as one.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::place::IS_WINDOWS;
use crate::shell::{self, Role, Simple, UNKNOWN};

/// The most text that is looked at, the same text in several readings counted each time.
const MOST_BYTES: usize = 64 * 1024;

/// The most of it that is looked at for commands that any program may run.
const MOST_INNER_BYTES: usize = 1 << 20;

/// The readings of a line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Readings {
    texts: BTreeSet<String>,
    /// Whether these are all: the line and every script in it could be parsed.
    pub(crate) is_whole: bool,
    /// Whether another shell than bash, as there are on Windows, could run something else.
    pub(crate) is_foreign: bool,
}

impl Readings {
    pub(crate) fn of(line: &str) -> Self {
        let line = line.trim();
        let mut finder = Finder { texts: texts(line), left: MOST_BYTES, ..Finder::default() };
        finder.found_line(line, Trust::Runs);
        while let Some((line, trust)) = finder.open.pop() {
            finder.line(&line, trust);
        }
        let is_foreign = IS_WINDOWS && !line.is_empty() && !shell::is_plain_program(line);
        Self { texts: finder.texts, is_whole: !finder.is_cut, is_foreign }
    }

    /// Each reading once; [`UNKNOWN`] stands for what only the shell knows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

/// A text whose readings are found when they are wanted.
#[derive(Debug)]
pub(crate) struct Text {
    text: String,
    readings: OnceCell<Readings>,
}

impl Text {
    pub(crate) fn new(text: String) -> Self {
        Self { text, readings: OnceCell::new() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn readings(&self) -> &Readings {
        self.readings.get_or_init(|| Readings::of(&self.text))
    }
}

/// Whether a text surely is a line that a shell runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    Runs,
    May,
}

#[derive(Debug, Default)]
struct Finder {
    texts: BTreeSet<String>,
    open: Vec<(String, Trust)>,
    seen: BTreeSet<(String, Trust)>,
    /// How much more may be looked at, in bytes.
    left: usize,
    /// Whether a line could not be parsed, or there was more than may be looked at.
    is_cut: bool,
}

impl Finder {
    fn found(&mut self, text: String) {
        if self.take(text.len()) {
            self.texts.insert(text);
        }
    }

    /// Takes this many bytes of the limit; returns whether there are any left.
    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes + 1) {
            Some(left) => self.left = left,
            None => (self.left, self.is_cut) = (0, true),
        }
        self.left > 0
    }

    fn found_line(&mut self, line: &str, trust: Trust) {
        if trust == Trust::Runs && line.contains(UNKNOWN) {
            // What the shell fills in here could be any command.
            self.found(UNKNOWN.to_string());
        }
        let line = line.trim();
        let line = (line.to_owned(), trust);
        if !line.0.is_empty() && !self.seen.contains(&line) && self.take(line.0.len()) {
            self.seen.insert(line.clone());
            self.open.push(line);
        }
    }

    fn line(&mut self, text: &str, trust: Trust) {
        let Some(line) = shell::parse(text) else {
            self.is_cut |= trust == Trust::Runs;
            // Then part by part: each is shorter.
            let joined = text.replace("\\\n", "");
            for part in joined.split(is_operator) {
                self.found_line(part, Trust::May);
            }
            return;
        };
        for command in &line.commands {
            self.simple(command, Trust::Runs);
        }
        self.is_cut |= line.is_cut;
        for inner in &line.inner {
            self.found_line(inner, Trust::May);
        }
        let mut readers = line.commands.iter().filter(|command| runs_input(command)).peekable();
        if readers.peek().is_some() {
            let are_fed = readers.all(|command| command.is_fed);
            self.inputs(&line, are_fed);
        }
    }

    /// A command, whose scripts are run as surely as it is.
    fn simple(&mut self, Simple { assignments, words, .. }: &Simple, trust: Trust) {
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let before: Vec<&str> = assignments.iter().map(|word| word.text.as_str()).collect();
        if !before.is_empty() {
            self.found(shell::join(&[&*before, &words].concat()));
        }
        self.command(&words, trust);
        // `time` is a reserved word in some shells, and its options are left over there.
        let is_option = words.first().is_some_and(|word| word.starts_with('-'));
        let role = words.first().and_then(|program| shell::role(program));
        let Some(role) = role.or(is_option.then_some(Role::Wrapper)) else { return };
        let places = shell::inner_commands(role, &words);
        for at in places.iter().copied() {
            let inner = &words[at..];
            self.command(inner, trust);
            if let Role::Xargs | Role::Find = role {
                self.found(shell::join(inner) + " \0");
                let is_end = |word: &&str| matches!(*word, ";" | "+" | "{}" | ":::");
                let end = inner.iter().position(is_end).unwrap_or(inner.len());
                self.command(&inner[..end], trust);
                self.found(shell::join(&inner[..end]) + " \0");
            }
            if self.left == 0 {
                return;
            }
        }
        let args = places.first().map_or(&[][..], |first| &words[*first..]);
        for line in args.iter().flat_map(|word| shell::lines_in(word)) {
            self.found_line(line, Trust::May);
        }
    }

    /// A command with its arguments, also without the folder of its program.
    fn command(&mut self, words: &[&str], trust: Trust) {
        let Some((program, args)) = words.split_first() else { return };
        self.found(shell::join(words));
        let base = shell::base(program);
        if base != *program {
            self.found(shell::join(&[&[&*base], args].concat()));
        }
        if let Some(words) = shell::without_git_options(words) {
            self.found(shell::join(&words));
        }
        for line in shell::aliases(words) {
            self.found_line(&line, Trust::May);
        }
        match shell::role(program) {
            Some(Role::Shell) => {
                if let Some(at) = shell::script(words) {
                    self.found_line(words[at], trust);
                }
            }
            Some(Role::Eval) => self.found_line(&shell::join(args), trust),
            _ => {}
        }
    }

    /// Takes what a shell in the line may read: what is given to the commands of the line, and what they
    /// may write, such as `echo`.
    fn inputs(&mut self, line: &shell::Line, are_fed: bool) {
        if !are_fed {
            self.found(UNKNOWN.to_string());
        }
        for input in &line.inputs {
            self.found_line(input, Trust::Runs);
        }
        for Simple { words, .. } in &line.commands {
            let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            for at in 1..words.len() {
                self.found_line(&shell::join(&words[at..]), Trust::May);
                self.found_line(words[at], Trust::May);
                if self.left == 0 {
                    return;
                }
            }
        }
    }
}

/// Whether the command, or one inside it, runs what it reads.
fn runs_input(Simple { words, .. }: &Simple) -> bool {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let role = words.first().and_then(|program| shell::role(program));
    let inner = role.map(|role| shell::inner_commands(role, &words)).unwrap_or_default();
    shell::runs_input(&words) || inner.into_iter().any(|at| shell::runs_input(&words[at..]))
}

/// The texts in a line that a program could take for a command of its own: from each word to the next operator, whatever
/// is quoted. Nothing if there are too many.
pub(crate) fn inner_texts(line: &str) -> Option<impl Iterator<Item = String>> {
    let spaced = line.replace(['"', '\'', '\\'], " ");
    let joined = line.replace(['"', '\'', '\\'], "");
    let mut left = MOST_INNER_BYTES;
    let mut texts = Vec::new();
    for part in [&spaced, &joined].into_iter().flat_map(|text| text.split(is_operator)) {
        let words: Vec<&str> = part.split_whitespace().collect();
        for at in 0..words.len() {
            let rest = words[at..].join(" ");
            left = left.checked_sub(rest.len())?;
            // Also what is glued to an option or an assignment.
            let value = rest.split_once('=').map(|(_, value)| value.to_owned());
            let glued = rest.strip_prefix('-').and_then(|rest| rest.get(1..)).map(str::to_owned);
            texts.extend([value, glued].into_iter().flatten());
            texts.push(rest);
        }
    }
    Some(texts.into_iter())
}

/// The line as text: the whole, its parts between operators, the scripts in them, all also with
/// single blanks.
fn texts(line: &str) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut open = vec![line.to_owned()];
    while let Some(line) = open.pop() {
        if line.is_empty() || texts.contains(&line) {
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
        texts.insert(line);
    }
    texts
}

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

/// The script of `SHELL -FLAGS… -c SCRIPT`.
pub(crate) struct Script<'a> {
    pub(crate) shell: &'a str,
    pub(crate) text: &'a str,
    /// Nothing follows the script.
    pub(crate) is_all: bool,
}

/// Finds the script where it stands in the plainest way.
pub(crate) fn script(words: &[String]) -> Option<Script<'_>> {
    let (shell, rest) = words.split_first()?;
    if shell::role(shell) != Some(shell::Role::Shell) {
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
