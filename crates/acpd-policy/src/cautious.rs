//! `reject` and `ask` rules: a single match in the call is enough, and so is a possible match.

use crate::command::Command;
use crate::facts::{Unclear, Understanding};
use crate::glob::Glob;
use crate::one_line::quoted;
use crate::place::{IS_WINDOWS, is_file, reading, resolve, strict_url, usual_url};
use crate::readings::{InnerTexts, Readings};
use crate::rule::{Call, Check, Rule, plain, unquoted};
use crate::shell::{UNKNOWN, is_plain_program};

const FOREIGN: &str = "is not a plain program with arguments";
const CUT: &str = "cannot be parsed to its end";

pub(crate) fn checks(rule: &Rule, call: Call<'_>) -> Vec<Check> {
    let checks = [
        rule.title.as_ref().map(|globs| title(globs, call.facts)),
        rule.command.as_ref().map(|globs| commands(globs, call.facts)),
        rule.path.as_ref().map(|globs| paths(globs, call)),
        rule.url.as_ref().map(|globs| urls(globs, call.facts)),
    ];
    checks.into_iter().flatten().collect()
}

fn title(globs: &[Glob], facts: &Understanding) -> Check {
    let Some(title) = &facts.title else { return Check::Fails("the call has no title".to_owned()) };
    let bare = unquoted(title);
    let readings = if facts.may_run { Readings::of(bare) } else { Readings::default() };
    let is_it = |glob: &Glob| glob.matches(title) || glob.matches(bare) || reads(glob, &readings);
    match plain("title", title, globs, is_it) {
        Err(_) if facts.may_run && is_foreign(bare) => Check::Might(foreign(bare)),
        check => check.into(),
    }
}

fn commands(globs: &[Glob], facts: &Understanding) -> Check {
    let named = any("command", &facts.commands, |command| {
        plain("command", &command.line, globs, |glob| reads(glob, command.readings()))
    });
    let Err(why) = named else { return named.into() };
    if facts.is_unread_command {
        return Check::Might("a command in the input cannot be read".to_owned());
    }
    if let Some(why) = facts.commands.iter().find_map(|command| might(globs, command)) {
        return Check::Might(why);
    }
    if let (Some(title), true) =
        (facts.title.as_deref().map(unquoted), facts.commands.is_empty() && facts.may_run)
    {
        // Some agents name the command only here.
        let readings = Readings::of(title);
        if let Ok(why) = plain("title", title, globs, |glob| reads(glob, &readings)) {
            return Check::Holds(why);
        }
        if is_foreign(title) {
            return Check::Might(foreign(title));
        }
    }
    let matched = |text: &str| globs.iter().find(|glob| glob.matches(text)).map(matches_it);
    let might = |text: &str| match InnerTexts::of(text) {
        _ if is_foreign(text) => Some(FOREIGN.to_owned()),
        Some(inner) => matched(text).or_else(|| inner.iter().find_map(matched)),
        None => Some(CUT.to_owned()),
    };
    in_unclear(facts, might).unwrap_or(Check::Fails(why))
}

fn reads(glob: &Glob, readings: &Readings) -> bool {
    readings.texts.iter().any(|reading| glob.matches(reading))
}

/// Returns whether a shell of Windows could read the line differently than bash.
fn is_foreign(line: &str) -> bool {
    IS_WINDOWS && !is_plain_program(line)
}

fn foreign(line: &str) -> String {
    format!("{} {FOREIGN}", quoted(line))
}

fn matches_it(glob: &Glob) -> String {
    format!("matches `{glob}`")
}

/// Returns the reason why the command could match.
fn might(globs: &[Glob], command: &Command) -> Option<String> {
    let line = quoted(&command.line);
    if is_foreign(&command.runs) {
        return Some(foreign(&command.runs));
    }
    let readings = command.readings();
    let starts = || readings.texts.iter().filter_map(|text| Some(text.split_once(UNKNOWN)?.0));
    if let Some(glob) = globs.iter().find(|glob| starts().any(|start| glob.might_match(start))) {
        return Some(format!("shell expansion could make command {line} match `{glob}`"));
    }
    let Some(inner) = InnerTexts::of(&command.line) else {
        return Some(format!("command {line} {CUT}"));
    };
    if let Some(text) = inner.iter().find(|text| globs.iter().any(|glob| glob.matches(text))) {
        return Some(format!("{} in command {line} could run", quoted(text)));
    }
    readings.is_cut.then(|| format!("command {line} {CUT}"))
}

fn paths(globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Check {
    let cwd = resolve(situation.cwd, situation.cwd, None);
    let matches = |path: &str, glob: &Glob| {
        glob.matches_path(&reading(path, situation.cwd, home), cwd.as_deref())
    };
    // A folder includes everything in it.
    let is_folder = |path: &&String| {
        let place = reading(path, situation.cwd, home);
        let inside = format!("{}/_", place.trim_end_matches('/'));
        globs.iter().any(|glob| glob.matches_path(&inside, cwd.as_deref()))
    };
    let is_unknown = |path: &str| resolve(path, situation.cwd, home).is_none();
    let named =
        any("path", &facts.paths, |path| plain("path", path, globs, |glob| matches(path, glob)));
    let Err(why) = named else { return named.into() };
    if let Some(path) = facts.paths.iter().chain(&facts.urls).find(|path| is_file(path)) {
        return Check::Might(format!("{} may be any file", quoted(path)));
    }
    if let Some(path) = facts.paths.iter().find(|path| is_unknown(path)) {
        return Check::Might(format!("the place of {} is unknown", quoted(path)));
    }
    if let Some(path) = facts.paths.iter().find(is_folder) {
        return Check::Might(format!("path {} may be a folder with it", quoted(path)));
    }
    let might = |text: &str| match globs.iter().find(|glob| matches(text, glob)) {
        Some(glob) => Some(matches_it(glob)),
        None => (IS_WINDOWS && is_unknown(text)).then(|| "may be any place".to_owned()),
    };
    in_unclear(facts, might).unwrap_or(Check::Fails(why))
}

fn urls(globs: &[Glob], facts: &Understanding) -> Check {
    let matches = |url: &str, glob: &Glob| {
        glob.matches(url) || usual_url(url).is_some_and(|url| glob.matches(&url))
    };
    let named = any("url", &facts.urls, |url| plain("url", url, globs, |glob| matches(url, glob)));
    let Err(why) = named else { return named.into() };
    if let Some(url) = facts.urls.iter().find(|url| strict_url(url).is_none()) {
        return Check::Might(format!("{} may be another address", quoted(url)));
    }
    let might = |text: &str, glob: &Glob| {
        ["", "https://", "http://"].iter().any(|scheme| matches(&format!("{scheme}{text}"), glob))
    };
    in_unclear(facts, |text| globs.iter().find(|glob| might(text, glob)).map(matches_it))
        .unwrap_or(Check::Fails(why))
}

/// `might`: the reason why a text could match.
fn in_unclear(facts: &Understanding, might: impl Fn(&str) -> Option<String>) -> Option<Check> {
    if facts.is_unread {
        return Some(Check::Might("the input cannot be read".to_owned()));
    }
    facts.unclear.iter().find_map(|Unclear { member, why, texts }| {
        let (text, reason) = texts.iter().find_map(|text| Some((text, might(text)?)))?;
        let (text, member) = (quoted(text), quoted(member));
        Some(Check::Might(format!("{text} in {member}, which {why}, {reason}")))
    })
}

fn any<T>(
    what: &str,
    things: &[T],
    check: impl Fn(&T) -> Result<String, String>,
) -> Result<String, String> {
    let mut last = Err(format!("the call names no {what}"));
    for thing in things {
        last = check(thing);
        if last.is_ok() {
            break;
        }
    }
    last
}
