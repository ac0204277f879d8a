//! `reject` and `ask` rules: a single match in the call is enough, and so is a possible match.

use crate::facts::{Facts, Unclear};
use crate::glob::Glob;
use crate::one_line::quoted;
use crate::place::{IS_WINDOWS, is_file, loose_urls, reading, resolve};
use crate::readings::{Readings, Text, inner_texts};
use crate::rule::{Call, Check, Rule, plain, unquoted};
use crate::shell::UNKNOWN;

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
    if !facts.may_run {
        let bare = unquoted(title);
        return plain("title", title, globs, |g| g.matches(title) || g.matches(bare)).into();
    }
    let readings = Readings::of(unquoted(title));
    match plain("title", title, globs, |glob| glob.matches(title) || any_reading(glob, &readings)) {
        Err(_) if readings.is_foreign => Check::Might(foreign(title)),
        check => check.into(),
    }
}

fn commands(globs: &[Glob], facts: &Facts<'_>) -> Check {
    let surely = |what: &str, line: &str, readings: &Readings| {
        plain(what, line, globs, |glob| any_reading(glob, readings))
    };
    let named = any("command", &facts.commands, |command| {
        surely("command", command.as_line(), command.readings())
    });
    let Err(why) = named else { return named.into() };
    if facts.is_unread_command {
        return Check::Might("a command in the input cannot be read".to_owned());
    }
    for command in &facts.commands {
        if let Some(why) = might(globs, command.as_line(), command.readings()) {
            return Check::Might(why);
        }
    }
    if let (Some(title), true) = (facts.title, facts.commands.is_empty() && facts.may_run) {
        // Some agents name the command nowhere else.
        let title = unquoted(title);
        let readings = Readings::of(title);
        match surely("title", title, &readings) {
            Ok(why) => return Check::Holds(why),
            Err(_) if readings.is_foreign => return Check::Might(foreign(title)),
            Err(_) => {}
        }
    }
    let might =
        |glob: &Glob, readings: &Readings| readings.is_foreign || any_reading(glob, readings);
    in_unclear(facts, |text| globs.iter().find(|glob| might(glob, text.readings())))
        .unwrap_or(Check::Fails(why))
}

/// Whether a glob matches one of the readings.
fn any_reading(glob: &Glob, readings: &Readings) -> bool {
    readings.iter().any(|reading| glob.matches(reading))
}

fn foreign(line: &str) -> String {
    format!("{} is not a plain program with arguments", quoted(line))
}

/// Why the line could turn out to match.
fn might(globs: &[Glob], line: &str, readings: &Readings) -> Option<String> {
    if readings.is_foreign {
        return Some(foreign(line));
    }
    let unknown = || readings.iter().filter(|reading| reading.contains(UNKNOWN));
    let fitting = globs.iter().find(|glob| unknown().any(|reading| glob.might_match(reading)));
    if let Some(glob) = fitting {
        let line = quoted(line);
        return Some(format!("shell expansion could make command {line} match `{glob}`"));
    }
    if let Some(mut texts) = inner_texts(line)
        && let Some(text) = texts.find(|text| globs.iter().any(|glob| glob.matches(text)))
    {
        let (text, line) = (quoted(&text), quoted(line));
        return Some(format!("{text} in command {line} could run"));
    }
    let is_cut = !readings.is_whole || inner_texts(line).is_none();
    is_cut.then(|| format!("command {} cannot be parsed to its end", quoted(line)))
}

fn paths(globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Check {
    let cwd = resolve(situation.cwd, situation.cwd, None);
    let matches = |path: &str, glob: &Glob| {
        glob.matches_path(&reading(path, situation.cwd, home), cwd.as_deref())
    };
    // What is in a folder goes with the folder.
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
    in_unclear(facts, |text| globs.iter().find(|glob| might(text.as_str(), glob)))
        .unwrap_or(Check::Fails(why))
}

fn urls(globs: &[Glob], facts: &Facts<'_>) -> Check {
    let matches = |url: &str, glob: &Glob| {
        glob.matches(url) || loose_urls(url).iter().any(|url| glob.matches(url))
    };
    let named = any("url", &facts.urls, |url| plain("url", url, globs, |glob| matches(url, glob)));
    let Err(why) = named else { return named.into() };
    if let Some(url) = facts.urls.iter().find(|url| loose_urls(url).is_empty()) {
        return Check::Might(format!("{} may be any address", quoted(url)));
    }
    in_unclear(facts, |text| globs.iter().find(|glob| matches(text.as_str(), glob)))
        .unwrap_or(Check::Fails(why))
}

/// Something in a part of the input that is not understood: what it is for is not known, so it might
/// be what the rule is about.
fn in_unclear<'g>(facts: &Facts<'_>, find: impl Fn(&Text) -> Option<&'g Glob>) -> Option<Check> {
    if facts.is_unread {
        return Some(Check::Might("the input cannot be read".to_owned()));
    }
    facts.unclear.iter().find_map(|Unclear { member, why, texts }| {
        let (text, glob) = texts.iter().find_map(|text| Some((text, find(text)?)))?;
        let (text, member) = (quoted(text.as_str()), quoted(member));
        Some(Check::Might(format!("{text} in {member}, which {why}, matches `{glob}`")))
    })
}

/// One of the things is enough.
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
