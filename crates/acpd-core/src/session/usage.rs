//! Usage of turns, as agents report it: tokens at the end of a turn, and the session's cost at any
//! time.
//!
//! The cost is a counter of the agent, so a turn costs the counter's growth
//! ([`crate::record::Counter`]). Reports during a restore only set the counter.
//!
//! Architecture invariant: usage is written once, with the end of its turn, and outlives its
//! session, because deleting a session does not return the money.

use acp_wire::bound::NAME;
use acp_wire::{clipped, count_at, str_at};
use acpd_api::{Amount, Cost, Tokens, Usage};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::params::raw_at;
use crate::record::When;
use crate::session::{Session, limit};

impl Session {
    /// Returns costs outside of turns.
    pub(crate) fn note_usage(&mut self, line: &Bytes) -> Vec<Cost> {
        if let Some(limit) = limit::reported_end(line) {
            self.limit = Some(limit);
        }
        let Some(update) = raw_at(line, &["params", "update"]) else { return Vec::new() };
        let is_told_again = self.is_restoring()
            || self.is_doubtful_at(self.row.host)
            // Earlier costs belong to no prompt of acpd.
            || self.row.prompts == 0;
        let when = match self.running {
            _ if is_told_again => When::Again,
            Some(_) => When::InTurn,
            None => When::BetweenTurns,
        };
        let mut known = self.row.usage.clone();
        let costs = known.told(usage_of(update), when);
        if known != self.row.usage {
            self.row.edit().usage = known;
        }
        costs
    }
}

/// Reads an update of usage. An unreadable figure counts as not reported.
fn usage_of(update: &RawValue) -> Usage {
    let json = update.get().as_bytes();
    let amount = raw_at(json, &["cost", "amount"]);
    let amount = amount.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let currency = str_at(json, &["cost", "currency"]).map(|text| clipped(&text, NAME));
    let cost = amount.and_then(Amount::from_units).zip(currency);
    Usage {
        used: count_at(json, &["used"]),
        size: count_at(json, &["size"]),
        cost: cost.map(|(amount, currency)| Cost { amount, currency: currency.into() }),
    }
}

/// Reads the tokens in the result of a prompt.
pub(crate) fn tokens_of(result: &RawValue) -> Tokens {
    let count = |name| count_at(result.get().as_bytes(), &["usage", name]);
    Tokens {
        total: count("totalTokens"),
        input: count("inputTokens"),
        output: count("outputTokens"),
        thought: count("thoughtTokens"),
        cached_read: count("cachedReadTokens"),
        cached_write: count("cachedWriteTokens"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn figures_are_read_one_by_one_and_what_is_no_figure_was_not_told() {
        let update = |update: Value| usage_of(&to_raw_value(&update).unwrap());
        let cost = json!({"amount": 0.25, "currency": "USD"});
        let told = update(json!({"used": 7, "size": 200_000, "cost": cost}));
        assert_eq!((told.used, told.size), (Some(7), Some(200_000)));
        let amount = Amount::from_units(0.25).unwrap();
        assert_eq!(told.cost, Some(Cost { amount, currency: "USD".into() }));
        for odd in [
            json!({"used": -1, "size": "9", "cost": null}),
            json!({"used": u64::MAX, "cost": {"amount": "1", "currency": "USD"}}),
            json!({"used": 1.5, "cost": {"amount": 1}}),
            json!([]),
        ] {
            assert_eq!(update(odd), Usage { used: None, size: None, cost: None });
        }
        let result = json!({"stopReason": "end_turn", "usage": {
            "totalTokens": 12, "inputTokens": 4, "outputTokens": 8, "cachedReadTokens": null}});
        let tokens = tokens_of(&to_raw_value(&result).unwrap());
        assert_eq!((tokens.total, tokens.input, tokens.output), (Some(12), Some(4), Some(8)));
        assert_eq!((tokens.thought, tokens.cached_read, tokens.cached_write), (None, None, None));
    }
}
