//! The compiled policy: its rules and its default.

use crate::config::{PolicyConfig, Ruling};
use crate::rule::{PolicyError, Rule};

/// Rules and their default, compiled. The default value has no rules and asks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub(crate) default: Ruling,
    pub(crate) rules: Vec<Rule>,
    pub(crate) home: Option<String>,
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
