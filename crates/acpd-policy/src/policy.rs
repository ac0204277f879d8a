use crate::config::{PolicyConfig, Ruling};
use crate::rule::{PolicyError, Rule};

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
