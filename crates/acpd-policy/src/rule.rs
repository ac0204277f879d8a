use crate::command::trimmed;
use crate::config::{Kind, List, PolicyConfig, RuleConfig, Ruling};
use crate::facts::Understanding;
use crate::glob::{Glob, Use};
use crate::one_line::quoted;
use crate::subject::Situation;

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) ruling: Ruling,
    pub(crate) agent: Option<Vec<Glob>>,
    pub(crate) workspace: Option<Vec<Glob>>,
    pub(crate) kind: Option<Vec<Kind>>,
    pub(crate) title: Option<Vec<Glob>>,
    pub(crate) command: Option<Vec<Glob>>,
    pub(crate) path: Option<Vec<Glob>>,
    pub(crate) url: Option<Vec<Glob>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) situation: &'a Situation<'a>,
    pub(crate) facts: &'a Understanding,
    pub(crate) home: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum Check {
    Holds(String),
    /// Unknown; only in `reject` and `ask` rules.
    Might(String),
    Fails(String),
}

impl From<Result<String, String>> for Check {
    fn from(check: Result<String, String>) -> Self {
        match check {
            Ok(why) => Self::Holds(why),
            Err(why) => Self::Fails(why),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy rule `{rule}`: {problem}")]
pub struct PolicyError {
    /// The name of the rule, or `rule N`.
    rule: String,
    problem: String,
    pub hint: Option<&'static str>,
}

impl Rule {
    /// `position`: in the list, from 1.
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
            hint: Some("remove the condition, or list what it should match"),
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
                    hint: bad.hint,
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
}

/// The default value has no rules and asks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub(crate) default: Ruling,
    pub(crate) rules: Vec<Rule>,
    pub(crate) home: Option<String>,
}

impl Policy {
    /// Compiles the rules. `home` replaces `~/`, in rules and in agents' paths.
    ///
    /// # Errors
    /// For the first text that is no glob, or can never match.
    pub fn new(config: &PolicyConfig, home: Option<&str>) -> Result<Self, PolicyError> {
        let rules = config.rules.iter().enumerate();
        let rules = rules.map(|(at, rule)| Rule::new(rule, at + 1, home));
        Ok(Self {
            default: config.default,
            rules: rules.collect::<Result<_, _>>()?,
            home: home.map(str::to_owned),
        })
    }
}

pub(crate) fn plain(
    what: &str,
    value: &str,
    globs: &[Glob],
    matches: impl Fn(&Glob) -> bool,
) -> Result<String, String> {
    match globs.iter().find(|glob| matches(glob)) {
        Some(glob) => Ok(format!("{what} {} matches `{glob}`", quoted(value))),
        None => {
            let list: Vec<String> = globs.iter().map(|glob| format!("`{glob}`")).collect();
            Err(format!("{what} {} does not match {}", quoted(value), list.join(" or ")))
        }
    }
}

/// Some agents put backticks around commands.
pub(crate) fn unquoted(title: &str) -> &str {
    let title = trimmed(title);
    let inner = title.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.map_or(title, trimmed)
}
