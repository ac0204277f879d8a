//! `reject` and `ask` rules: a single match in the call is enough, and so is a possible match.

use crate::command::Command;
use crate::facts::{Facts, Unclear};
use crate::glob::Glob;
use crate::one_line::quoted;
use crate::place::{IS_WINDOWS, is_file, reading, resolve, strict_url, usual_url};
use crate::readings::{Readings, inner_texts};
use crate::rule::{Call, Check, Rule, plain, unquoted};
use crate::shell::{UNKNOWN, is_plain_program};

/// The conditions on the call itself.
pub(crate) fn checks(rule: &Rule, call: Call<'_>) -> Vec<Check> {
    let checks = [
        rule.title.as_ref().map(|globs| title(globs, call.facts)),
        rule.command.as_ref().map(|globs| commands(globs, call.facts)),
        rule.path.as_ref().map(|globs| paths(globs, call)),
        rule.url.as_ref().map(|globs| urls(globs, call.facts)),
    ];
    checks.into_iter().flatten().collect()
}

fn title(globs: &[Glob], facts: &Facts<'_>) -> Check {
    let Some(title) = facts.title else { return Check::Fails("the call has no title".to_owned()) };
    let bare = unquoted(title);
    let readings = if facts.may_run { Readings::of(bare) } else { Readings::default() };
    let is_it = |glob: &Glob| glob.matches(title) || glob.matches(bare) || reads(glob, &readings);
    match plain("title", title, globs, is_it) {
        Err(_) if facts.may_run && is_foreign(bare) => Check::Might(foreign(bare)),
        check => check.into(),
    }
}

fn commands(globs: &[Glob], facts: &Facts<'_>) -> Check {
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
        (facts.title.map(unquoted), facts.commands.is_empty() && facts.may_run)
    {
        // Some agents name the command nowhere else.
        let readings = Readings::of(title);
        if let Ok(why) = plain("title", title, globs, |glob| reads(glob, &readings)) {
            return Check::Holds(why);
        }
        if is_foreign(title) {
            return Check::Might(foreign(title));
        }
    }
    let might = |glob: &Glob, text: &str| {
        let inside = inner_texts(text);
        is_foreign(text)
            || glob.matches(text)
            || inside.is_none_or(|mut texts| texts.any(|text| glob.matches(&text)))
    };
    in_unclear(facts, |text| globs.iter().find(|glob| might(glob, text)))
        .unwrap_or(Check::Fails(why))
}

/// Returns whether a glob matches one of the readings.
fn reads(glob: &Glob, readings: &Readings) -> bool {
    readings.texts.iter().any(|reading| glob.matches(reading))
}

/// Returns whether another shell than bash, as there are on Windows, could read the line differently.
fn is_foreign(line: &str) -> bool {
    IS_WINDOWS && !is_plain_program(line)
}

fn foreign(line: &str) -> String {
    format!("{} is not a plain program with arguments", quoted(line))
}

/// Returns why the command could turn out to match.
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
    let Some(mut texts) = inner_texts(&command.line) else {
        return Some(format!("command {line} cannot be parsed to its end"));
    };
    if let Some(text) = texts.find(|text| globs.iter().any(|glob| glob.matches(text))) {
        return Some(format!("{} in command {line} could run", quoted(&text)));
    }
    readings.is_cut.then(|| format!("command {line} cannot be parsed to its end"))
}

fn paths(globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Check {
    let cwd = resolve(situation.cwd, situation.cwd, None);
    let matches = |path: &str, glob: &Glob| {
        glob.matches_path(&reading(path, situation.cwd, home), cwd.as_deref())
    };
    // A folder goes with everything in it.
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
    let might = |path: &str, glob: &Glob| IS_WINDOWS && is_unknown(path) || matches(path, glob);
    in_unclear(facts, |text| globs.iter().find(|glob| might(text, glob)))
        .unwrap_or(Check::Fails(why))
}

fn urls(globs: &[Glob], facts: &Facts<'_>) -> Check {
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
    in_unclear(facts, |text| globs.iter().find(|glob| might(text, glob)))
        .unwrap_or(Check::Fails(why))
}

/// Looks for texts in parts of the input that are not understood: they might be what the rule is about.
fn in_unclear<'g>(facts: &Facts<'_>, find: impl Fn(&str) -> Option<&'g Glob>) -> Option<Check> {
    if facts.is_unread {
        return Some(Check::Might("the input cannot be read".to_owned()));
    }
    facts.unclear.iter().find_map(|Unclear { member, why, texts }| {
        let (text, glob) = texts.iter().find_map(|text| Some((text, find(text)?)))?;
        let (text, member) = (quoted(text), quoted(member));
        Some(Check::Might(format!("{text} in {member}, which {why}, matches `{glob}`")))
    })
}

/// Checks that one of the things passes.
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
