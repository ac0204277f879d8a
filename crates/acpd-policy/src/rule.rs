//! A rule, and why it does or does not match.

use std::fmt::{self, Write as _};

use crate::command;
use crate::config::{Kind, List, RuleConfig, Ruling};
use crate::decide::Situation;
use crate::facts::Facts;
use crate::glob::{Glob, Use};
use crate::place::{below, loose_url, resolve, strict_url};
use crate::policy::PolicyError;

/// A rule, ready for use.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) ruling: Ruling,
    agent: Option<Vec<Glob>>,
    workspace: Option<Vec<Glob>>,
    kind: Option<Vec<Kind>>,
    title: Option<Vec<Glob>>,
    command: Option<Vec<Glob>>,
    path: Option<Vec<Glob>>,
    url: Option<Vec<Glob>>,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) situation: &'a Situation<'a>,
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) home: Option<&'a str>,
}

/// Why a condition holds, or why it does not.
type Check = Result<String, String>;

impl Rule {
    /// Compiles the rule at `position` of the list, counted from 1.
    pub(crate) fn new(
        config: &RuleConfig,
        position: usize,
        home: Option<&str>,
    ) -> Result<Self, PolicyError> {
        let name = config.name.clone().unwrap_or_else(|| format!("rule {position}"));
        let ruling = config.decision;
        let empty = |key: &str| PolicyError {
            rule: name.clone(),
            problem: format!("`{key}` is an empty list"),
            hint: Some("leave the condition out, or name what it is to match".to_owned()),
        };
        let globs = |key: &str, list: &Option<List<String>>, usage: Use| {
            let Some(List(texts)) = list else { return Ok(None) };
            if texts.is_empty() {
                return Err(empty(key));
            }
            let compiled = texts.iter().map(|text| {
                Glob::new(text, ruling, usage, home).map_err(|bad| PolicyError {
                    rule: name.clone(),
                    problem: format!("the glob `{text}` of `{key}` {}", bad.problem),
                    hint: bad.hint.map(str::to_owned),
                })
            });
            compiled.collect::<Result<Vec<_>, _>>().map(Some)
        };
        let kind = config.kind.as_ref().map(|List(kinds)| kinds.clone());
        if kind.as_ref().is_some_and(Vec::is_empty) {
            return Err(empty("kind"));
        }
        Ok(Self {
            agent: globs("agent", &config.agent, Use::Name)?,
            workspace: globs("workspace", &config.workspace, Use::Folder)?,
            kind,
            title: globs("title", &config.title, Use::Text)?,
            command: globs("command", &config.command, Use::Text)?,
            path: globs("path", &config.path, Use::Path)?,
            url: globs("url", &config.url, Use::Url)?,
            name,
            ruling,
        })
    }

    /// Why every condition holds, or why the first that does not fails.
    pub(crate) fn check(&self, call: Call<'_>) -> Result<Vec<String>, String> {
        let Call { situation, facts, .. } = call;
        let checks = [
            self.agent.as_ref().map(|globs| {
                plain("agent", situation.agent, globs, |glob| glob.matches(situation.agent))
            }),
            self.workspace.as_ref().map(|globs| {
                let cwd = resolve(situation.cwd, situation.cwd, None);
                let matches = |glob: &Glob| cwd.as_ref().is_some_and(|cwd| glob.matches(cwd));
                plain("workspace", situation.cwd, globs, matches)
            }),
            self.kind.as_ref().map(|kinds| {
                let is_listed = kinds.contains(&facts.kind);
                let verb = if is_listed { "is" } else { "is not" };
                let why = format!("kind `{}` {verb} in the list", facts.kind);
                if is_listed { Ok(why) } else { Err(why) }
            }),
            self.title.as_ref().map(|globs| self.title(globs, facts)),
            self.command.as_ref().map(|globs| self.command(globs, call)),
            self.path.as_ref().map(|globs| self.path(globs, call)),
            self.url.as_ref().map(|globs| self.url(globs, facts)),
        ];
        checks.into_iter().flatten().collect()
    }

    fn is_cautious(&self) -> bool {
        self.ruling != Ruling::Allow
    }

    fn title(&self, globs: &[Glob], facts: &Facts<'_>) -> Check {
        let Some(title) = facts.title else { return Err("the call has no title".to_owned()) };
        let bare = unquoted(title);
        if self.is_cautious() && facts.may_run {
            let readings = command::readings(bare);
            return plain("title", title, globs, |glob| {
                glob.matches(title) || readings.iter().any(|reading| glob.matches(reading))
            });
        }
        if facts.may_run
            && let Some(operator) = command::operator(bare)
        {
            return exactly("title", bare, operator, globs);
        }
        plain("title", title, globs, |glob| glob.matches(title) || glob.matches(bare))
    }

    fn command(&self, globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Check {
        if self.is_cautious() {
            return any("command", &facts.commands, |command| {
                let readings = command::readings(&command.line);
                plain("command", &command.line, globs, |glob| {
                    readings.iter().any(|reading| glob.matches(reading))
                })
            });
        }
        if let Some(folder) = &facts.folder {
            let place = resolve(folder, situation.cwd, home);
            let cwd = resolve(situation.cwd, situation.cwd, None);
            let inside = place.zip(cwd).is_some_and(|(place, cwd)| below(&place, &cwd).is_some());
            if !inside {
                return Err(format!("it is to run in {}, outside the workspace", quoted(folder)));
            }
        }
        all("command", &facts.commands, facts, |command| match command::operator(&command.runs) {
            Some(operator) => exactly("command", &command.runs, operator, globs),
            None => plain("command", &command.runs, globs, |glob| glob.matches(&command.runs)),
        })
    }

    fn path(&self, globs: &[Glob], Call { situation, facts, home }: Call<'_>) -> Check {
        let cwd = resolve(situation.cwd, situation.cwd, None);
        let check = |path: &String| {
            let place = resolve(path, situation.cwd, home);
            if place.is_none() && !self.is_cautious() {
                return Err(format!("where {} is cannot be known", quoted(path)));
            }
            let place = place.as_deref().unwrap_or(path);
            plain("path", path, globs, |glob| glob.matches_path(place, cwd.as_deref()))
        };
        if self.is_cautious() {
            return any("path", &facts.paths, check);
        }
        self.no_command_beside(facts)?;
        all("path", &facts.paths, facts, check)
    }

    /// The places of a command are never all known: such a call is only allowed with its command.
    fn no_command_beside(&self, facts: &Facts<'_>) -> Result<(), String> {
        let runs = facts.kind == Kind::Execute || !facts.commands.is_empty();
        if runs && self.command.is_none() {
            return Err("the call runs a command, which may touch more than it names".to_owned());
        }
        Ok(())
    }

    fn url(&self, globs: &[Glob], facts: &Facts<'_>) -> Check {
        if self.is_cautious() {
            return any("url", &facts.urls, |url| {
                let loose = loose_url(url);
                plain("url", url, globs, |glob| glob.matches(url) || glob.matches(&loose))
            });
        }
        self.no_command_beside(facts)?;
        all("url", &facts.urls, facts, |url| match strict_url(url) {
            None => Err(format!("url {} can be read in more than one way", quoted(url))),
            Some(plain_url) => plain("url", url, globs, |glob| glob.matches(&plain_url)),
        })
    }
}

/// Some glob must match.
fn plain(what: &str, value: &str, globs: &[Glob], matches: impl Fn(&Glob) -> bool) -> Check {
    match globs.iter().find(|glob| matches(glob)) {
        Some(glob) => Ok(format!("{what} {} matches `{glob}`", quoted(value))),
        None => {
            let list: Vec<String> = globs.iter().map(|glob| format!("`{glob}`")).collect();
            Err(format!("{what} {} does not match {}", quoted(value), list.join(" or ")))
        }
    }
}

/// Behind a shell operator no wildcard is trusted.
fn exactly(what: &str, value: &str, operator: char, globs: &[Glob]) -> Check {
    let Some(glob) = globs.iter().find(|glob| glob.is_exactly(value)) else {
        let operator = quoted(operator.encode_utf8(&mut [0; 4]));
        let value = quoted(value);
        return Err(format!("{what} {value} has {operator}: a wildcard does not allow that"));
    };
    Ok(format!("{what} {} is exactly `{glob}`", quoted(value)))
}

/// For rules that are careful: one of the things is enough.
fn any<T>(what: &str, things: &[T], check: impl Fn(&T) -> Check) -> Check {
    let mut last = Err(format!("the call names no {what}"));
    for thing in things {
        last = check(thing);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// For rules that allow: all the things, at least one, and nothing unknown beside them.
fn all<T>(what: &str, things: &[T], facts: &Facts<'_>, check: impl Fn(&T) -> Check) -> Check {
    if facts.is_partial {
        return Err("not all of the input can be read".to_owned());
    }
    let reasons = things.iter().map(check).collect::<Result<Vec<_>, _>>()?;
    if reasons.is_empty() {
        return Err(format!("the call names no {what}"));
    }
    Ok(reasons.join(", "))
}

/// The title without the backticks that some agents put around commands.
fn unquoted(title: &str) -> &str {
    let title = title.trim();
    let inner = title.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.map_or(title, str::trim)
}

/// What an agent wrote, on one line and not too long.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", OneLine(text))
}

/// Text of an agent as a part of one line for people.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 200;
        for c in self.0.chars().take(LONGEST) {
            match c {
                '\'' | '"' | '\\' => f.write_char(c)?,
                // Also what would turn the direction of the line.
                c => write!(f, "{}", c.escape_debug())?,
            }
        }
        if self.0.chars().nth(LONGEST).is_some() { f.write_char('…') } else { Ok(()) }
    }
}
