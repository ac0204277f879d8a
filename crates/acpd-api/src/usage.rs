//! What agents tell of tokens and cost.
//!
//! Every figure is the agent's, and a member that is absent was not told: that is not 0.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Untrusted;

/// Parts of a unit that are counted: a turn may cost less than a cent.
const PARTS: f64 = 1e9;

/// An amount of money, not negative. In JSON it is a number of units, such as dollars; it is counted in
/// billionths of them, so sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// So many units; `None` for what is no amount: negative, too big, no number.
    pub fn from_units(units: f64) -> Option<Amount> {
        let parts = (units * PARTS).round();
        (0.0..i64::MAX as f64).contains(&parts).then_some(Amount(parts as u64))
    }

    /// So many billionths of a unit.
    pub fn from_parts(parts: u64) -> Amount {
        Amount(parts)
    }

    /// Billionths of a unit.
    pub fn parts(self) -> u64 {
        self.0
    }

    /// Units.
    pub fn units(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// Both together, at most the highest there is.
    #[must_use]
    pub fn plus(self, more: Amount) -> Amount {
        Amount(self.0.saturating_add(more.0))
    }
}

/// With two digits, or four for less than a cent.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Four digits would say that it was nothing.
        if self.0 > 0 && self.units() < 0.00005 {
            return f.write_str("<0.0001");
        }
        let digits = if self.0 > 0 && self.units() < 0.01 { 4 } else { 2 };
        write!(f, "{:.digits$}", self.units())
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.units().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        let units = f64::deserialize(deserializer)?;
        Amount::from_units(units).ok_or_else(|| serde::de::Error::custom("no amount of money"))
    }
}

/// An amount in its currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// How much.
    pub amount: Amount,
    /// Of what: mostly an ISO 4217 code.
    pub currency: Untrusted,
}

/// What an agent has told last of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Tokens that the context has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What the session has cost, as the agent counts: some begin anew with each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Tokens of one turn, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// All of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What the model has read, without what came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// What it has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it has thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<u64>,
    /// What it has read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<u64>,
    /// What was put into a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<u64>,
}

impl Tokens {
    /// Whether nothing was told.
    pub fn is_empty(&self) -> bool {
        *self == Tokens::default()
    }
}

/// What a turn has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// Its tokens.
    #[serde(default, skip_serializing_if = "Tokens::is_empty")]
    pub tokens: Tokens,
    /// By how much the session's cost has grown in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The budget of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetInfo {
    /// What may be spent.
    pub per_day: Cost,
    /// What was spent today in that currency, as far as agents have told.
    pub spent: Amount,
    /// It is used up.
    pub is_over: bool,
}

/// Parameters of `_acpd/usage`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UsageParams {
    /// Only turns that ended at this time or later (ms since the epoch).
    pub since: u64,
    /// What belongs together.
    pub by: UsageBy,
}

/// What is added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// All turns of an agent.
    #[default]
    Agent,
    /// All turns of a session.
    Session,
    /// All turns in a directory.
    Workspace,
    /// All turns of a day.
    Day,
}

/// Result of `_acpd/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// One for each agent, session, directory or day.
    pub totals: Vec<UsageTotal>,
}

/// What some turns have used together: the sum of what was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotal {
    /// The agent, by agent and by session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Untrusted>,
    /// The session, which may have been deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// The directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Untrusted>,
    /// When the day began, by the daemon's clock (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<u64>,
    /// Turns that ended.
    pub turns: u64,
    /// Turns of which the agent has told nothing.
    pub untold: u64,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Tokens::is_empty")]
    pub tokens: Tokens,
    /// Costs, one for each currency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_what_is_none_is_refused() {
        let tenth = Amount::from_units(0.1).unwrap();
        let sum = (0..10).fold(Amount::default(), |sum, _| sum.plus(tenth));
        assert_eq!(sum, Amount::from_units(1.0).unwrap());
        for odd in [-0.01, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Amount::from_units(odd), None, "{odd}");
        }
        let json = serde_json::to_string(&Amount::from_units(0.042).unwrap()).unwrap();
        assert_eq!(json, "0.042");
        assert_eq!(serde_json::from_str::<Amount>(&json).unwrap().parts(), 42_000_000);
        assert!(serde_json::from_str::<Amount>("-1").is_err());
        let shown = |units| Amount::from_units(units).unwrap().to_string();
        assert_eq!([shown(0.0), shown(0.0042), shown(12.0)], ["0.00", "0.0042", "12.00"]);
        assert_eq!([shown(0.00001), shown(0.00006)], ["<0.0001", "0.0001"]);
    }
}
