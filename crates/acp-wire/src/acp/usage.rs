//! Reading tokens and cost (protocol brief, sections 3.1 and 3.3). An unreadable figure counts as
//! not reported.

use serde_json::value::RawValue;

use super::read::Reader;
use crate::bound::{NAME, clipped};

/// The update `usage_update` of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageUpdate {
    /// Tokens in the context.
    pub used: Option<u64>,
    /// Capacity of the context in tokens.
    pub size: Option<u64>,
    /// Cost of the session so far: an amount and its currency.
    pub cost: Option<(f64, String)>,
}

impl UsageUpdate {
    /// Reads a raw update.
    pub fn from_raw(update: &RawValue) -> UsageUpdate {
        let update = Reader::new(update);
        let currency = update.text(&["cost", "currency"]).map(|text| clipped(&text, NAME));
        UsageUpdate {
            used: update.count(&["used"]),
            size: update.count(&["size"]),
            cost: update.number(&["cost", "amount"]).zip(currency),
        }
    }
}

/// The `usage` in a `session/prompt` result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTokens {
    /// All tokens of the turn.
    pub total: Option<u64>,
    /// Tokens read, without cached ones.
    pub input: Option<u64>,
    /// Tokens written by the model.
    pub output: Option<u64>,
    /// Tokens of the model's thoughts.
    pub thought: Option<u64>,
    /// Tokens read from a cache.
    pub cached_read: Option<u64>,
    /// Tokens written to a cache.
    pub cached_write: Option<u64>,
}

impl TurnTokens {
    /// Reads the result of a prompt.
    pub fn from_raw(result: &RawValue) -> TurnTokens {
        let result = Reader::new(result);
        let count = |name| result.count(&["usage", name]);
        TurnTokens {
            total: count("totalTokens"),
            input: count("inputTokens"),
            output: count("outputTokens"),
            thought: count("thoughtTokens"),
            cached_read: count("cachedReadTokens"),
            cached_write: count("cachedWriteTokens"),
        }
    }
}
