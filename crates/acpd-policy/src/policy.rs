//! The rules in a form that can be used.

use crate::config::{PolicyConfig, Ruling};
use crate::rule::Rule;

/// Rules and their default, compiled. The default value has no rules and asks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub(crate) default: Ruling,
    pub(crate) rules: Vec<Rule>,
    pub(crate) home: Option<String>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy rule `{rule}`: {problem}")]
pub struct PolicyError {
    pub(crate) rule: String,
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

impl PolicyError {
    /// The name of the rule, or `rule N`.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The way out.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl Policy {
    /// Compiles the rules. `home` is what `~/` stands for, in rules and in what agents write.
    ///
    /// Fails on the first rule with something that is not a glob, or that could never match.
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
