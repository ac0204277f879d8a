//! Tokens and cost, as agents report them. An absent figure was not reported, which is not 0.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Untrusted;

/// Counted parts of a unit: a turn may cost less than a cent.
const PARTS: f64 = 1e9;

/// A non-negative amount of money. JSON has it in units, such as dollars. It is counted in
/// billionths of them, so sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// Creates an amount from units; `None` for negative, too large or non-finite numbers.
    pub fn from_units(units: f64) -> Option<Amount> {
        let parts = (units * PARTS).round();
        (0.0..i64::MAX as f64).contains(&parts).then_some(Amount(parts as u64))
    }

    /// Creates an amount from billionths of a unit.
    pub fn from_parts(parts: u64) -> Amount {
        Amount(parts)
    }

    /// Billionths of a unit.
    pub fn parts(self) -> u64 {
        self.0
    }

    /// Returns the amount in units.
    pub fn units(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// The sum, up to the largest amount.
    #[must_use]
    pub fn plus(self, more: Amount) -> Amount {
        Amount(self.0.saturating_add(more.0))
    }
}

/// With two digits, or four for less than a cent.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Four digits would be zeros.
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
pub struct Cost {
    /// The amount in units of the currency, such as dollars.
    pub amount: Amount,
    /// The currency, usually an ISO 4217 code.
    pub currency: Untrusted,
}

/// The agent's last report about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Capacity of the context in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Cost of the session by the agent's count; some agents start at 0 again with each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Tokens of one turn, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Tokens of all kinds together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Tokens read by the model, without cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens of its thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<u64>,
    /// Tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<u64>,
}

impl Tokens {
    /// Returns whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        *self == Tokens::default()
    }
}

/// Usage of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Tokens of the turn.
    #[serde(default, skip_serializing_if = "Tokens::is_empty")]
    pub tokens: Tokens,
    /// Growth of the session's cost in the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The budget of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetInfo {
    /// The budget per day.
    pub per_day: Cost,
    /// Reported cost of today in that currency.
    pub spent: Amount,
    /// The budget is used up.
    pub is_over: bool,
}

/// Parameters for adding up usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UsageParams {
    /// Restricts the result to turns that ended at this time or later (ms since the epoch).
    pub since: u64,
    /// Grouping of the result.
    pub by: UsageBy,
}

/// Grouping of the sums in a usage report.
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

/// Sums of usage by group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// One for each agent, session, directory or day.
    pub totals: Vec<UsageTotal>,
}

/// Sum of the reported usage of some turns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotal {
    /// The agent, if grouped by agent or by session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Untrusted>,
    /// The session, which may have been deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// Working directory of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Untrusted>,
    /// Start of the day by the daemon's clock (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<u64>,
    /// Number of ended turns.
    pub turns: u64,
    /// Number of turns without a report.
    pub untold: u64,
    /// Sum of their tokens.
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
