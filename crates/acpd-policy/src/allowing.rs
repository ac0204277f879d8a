//! `allow` rules: acpd must understand everything that the call does, and all of it must match.

use crate::config::Kind;
use crate::facts::{Unclear, Understanding};
use crate::glob::Glob;
use crate::one_line::quoted;
use crate::place::{IS_WINDOWS, below, resolve, strict_url};
use crate::readings::operator;
use crate::rule::{Call, Check, Rule, plain, unquoted};
use crate::shell::{self, Simple};

pub(crate) fn checks(rule: &Rule, call: Call<'_>) -> Vec<Check> {
    let checks = [
        rule.title.as_ref().map(|globs| title(globs, call.facts)),
        rule.command.as_ref().map(|globs| commands(globs, call)),
        rule.path.as_ref().map(|globs| paths(globs, call)),
        rule.url.as_ref().map(|globs| urls(globs, call.facts)),
        Some(whole(rule, call.facts)).filter(Result::is_err),
    ];
    checks.into_iter().flatten().map(Check::from).collect()
}

type Allowed = Result<String, String>;

/// A rule with `command`, `path` or `url` must cover the whole call, and so must every rule if the
/// call may run something. Other rules are about a class of calls with any input.
fn whole(rule: &Rule, facts: &Understanding) -> Allowed {
    let is_precise = rule.command.is_some() || rule.path.is_some() || rule.url.is_some();
    let runs = facts.kind == Kind::Execute || !facts.commands.is_empty() || facts.is_unread_command;
    if let Some(kinds) = &rule.kind {
        // The kind is the agent's claim; acpd's own reading counts as well.
        if runs && rule.command.is_none() && !kinds.contains(&Kind::Execute) {
            return Err("the call runs a command, and its kind is not `execute`".to_owned());
        }
        let changes = [Kind::Edit, Kind::Delete, Kind::Move];
        if facts.edits && !changes.iter().any(|kind| kinds.contains(kind)) {
            return Err("the call changes files, and its kind is not `edit`".to_owned());
        }
    } else if facts.edits && rule.path.is_none() && (is_precise || rule.title.is_some()) {
        return Err("the call changes files, and the rule has no `path`".to_owned());
    }
    if !is_precise && !facts.may_run {
        return Ok(String::new());
    }
    if let Some(Unclear { member, why, .. }) = facts.unclear.first() {
        return Err(match member.as_str() {
            "" => format!("the input {why}"),
            member => format!("the input is not fully understood: {} {why}", quoted(member)),
        });
    }
    // The places of a command are never all known.
    if runs && rule.command.is_none() && is_precise {
        return Err("the call runs a command, which may touch more than it names".to_owned());
    }
    let is_about_all = is_precise || rule.title.is_some();
    if facts.names_paths && rule.path.is_none() && is_about_all {
        return Err("the input names paths, and the rule has no `path`".to_owned());
    }
    if !facts.urls.is_empty() && rule.url.is_none() && is_about_all {
        return Err("the input names addresses, and the rule has no `url`".to_owned());
    }
    Ok(String::new())
}

fn title(globs: &[Glob], facts: &Understanding) -> Allowed {
    let Some(title) = &facts.title else { return Err("the call has no title".to_owned()) };
    let bare = unquoted(title);
    if !facts.may_run {
        return plain("title", title, globs, |glob| glob.matches(title) || glob.matches(bare));
    }
    let why = line("title", bare, globs)?;
    // The title is the agent's claim; the command is what runs.
    facts.commands.iter().try_for_each(|c| line("command", &c.runs, globs).map(drop))?;
    Ok(why)
}

fn commands(globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Allowed {
    if let Some(folder) = &facts.folder {
        let place = resolve(folder, situation.cwd, home);
        let cwd = resolve(situation.cwd, situation.cwd, None);
        let inside = place.zip(cwd).is_some_and(|(place, cwd)| below(&place, &cwd, true).is_some());
        if !inside {
            return Err(format!("it would run in {}, outside the workspace", quoted(folder)));
        }
    }
    all("command", &facts.commands, |command| line("command", &command.runs, globs))
}

/// Checks that a line runs only commands that a glob names.
///
/// A glob without wildcards allows exactly its own text. A wildcard allows further words of one
/// plain command. It does not choose the program: not after a shell operator, an assignment or a
/// program that runs others, and not by a shell expansion.
fn line(what: &str, line: &str, globs: &[Glob]) -> Allowed {
    let no = |reason: &str| Err(format!("{what} {} {reason}", quoted(line)));
    if let Some(glob) = globs.iter().find(|glob| glob.is_exactly(line)) {
        return match shell::parse(line) {
            Some(_) => Ok(format!("{what} {} is exactly `{glob}`", quoted(line))),
            None => no("cannot be parsed"),
        };
    }
    if let Some(operator) = operator(line) {
        let operator = quoted(operator.encode_utf8(&mut [0; 4]));
        return no(&format!("has {operator}: a wildcard does not allow that"));
    }
    let matching = plain(what, line, globs, |glob| glob.matches(line))?;
    let Some(simple) = shell::plain_command(line) else {
        return no("is not one plain command: a wildcard does not allow that");
    };
    if IS_WINDOWS && !shell::is_plain_program(line) {
        return no("is not a plain program with arguments: a wildcard does not allow that");
    }
    let named = |glob: &Glob| glob.literal_start().chars().count();
    match to_be_named(&simple) {
        Some((end, _)) if globs.iter().any(|g| g.matches(line) && named(g) >= end) => Ok(matching),
        Some((_, word)) => no(&format!(
            "puts {} before the command that runs: a wildcard does not allow that",
            quoted(word)
        )),
        None => Ok(matching),
    }
}

/// Returns the end, in characters, of the part that a glob must spell out before its first
/// wildcard, and the word that requires it. The part ends with the word after the last assignment
/// or program that runs others, or after that program's own words before a command: `sudo find .
/// -exec`.
fn to_be_named(command: &Simple) -> Option<(usize, &str)> {
    let texts = command.texts();
    let first_word = command.assignments.len();
    let launching = shell::launching_words(&texts[first_word..]);
    let decides = |at: usize| -> bool {
        let Some(word) = at.checked_sub(first_word) else { return true };
        let is_inside = |first: &usize| {
            word > *first
                && !shell::is_finder(texts[first_word])
                && (shell::runs_others(texts[at]) || *first == 0 && texts[at].contains('='))
        };
        launching.contains(&word) || launching.first().is_some_and(is_inside)
    };
    let last = (0..texts.len()).rev().find(|at| decides(*at))?;
    let last = last + shell::launching_words(&texts[last..]).last().copied().unwrap_or(0);
    let next = command.assignments.iter().chain(&command.words).nth(last + 1);
    Some((next.map_or(usize::MAX, |next| next.end), texts[last]))
}

fn paths(globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Allowed {
    let cwd = resolve(situation.cwd, situation.cwd, None);
    all("path", &facts.paths, |path| match resolve(path, situation.cwd, home) {
        None => Err(format!("the place of {} is unknown", quoted(path))),
        Some(place) => plain("path", path, globs, |glob| glob.matches_path(&place, cwd.as_deref())),
    })
}

fn urls(globs: &[Glob], facts: &Understanding) -> Allowed {
    all("url", &facts.urls, |url| match strict_url(url) {
        None => Err(format!("url {} can be read in more than one way", quoted(url))),
        Some(plain_url) => plain("url", url, globs, |glob| glob.matches(&plain_url)),
    })
}

fn all<T>(what: &str, things: &[T], check: impl Fn(&T) -> Allowed) -> Allowed {
    let reasons = things.iter().map(check).collect::<Result<Vec<_>, _>>()?;
    if reasons.is_empty() {
        return Err(format!("the call names no {what}"));
    }
    Ok(reasons.join(", "))
}
