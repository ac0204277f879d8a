//! Usage of turns, as agents report it: tokens at the end of a turn, and the session's cost at any
//! time.
//!
//! The cost is a counter of the agent, so a turn costs the counter's growth
//! ([`crate::record::Counter`]). Reports during a restore only set the counter.
//!
//! Architecture invariant: usage is written once, with the end of its turn, and outlives its
//! session, because deleting a session does not return the money.

use acp_wire::acp::{TurnTokens, UsageUpdate};
use acpd_api::{Amount, Cost, Tokens, Usage};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::params::raw_at;
use crate::record::When;
use crate::session::{Session, State, limit};

impl Session {
    /// Returns costs outside of turns.
    pub(crate) fn note_usage(&mut self, line: &Bytes) -> Vec<Cost> {
        if let Some(limit) = limit::reported_end(line) {
            self.limit = Some(limit);
        }
        let Some(update) = raw_at(line, &["params", "update"]) else { return Vec::new() };
        let UsageUpdate { used, size, cost } = UsageUpdate::from_raw(update);
        let cost = cost.and_then(|(amount, currency)| {
            Some(Cost { amount: Amount::from_units(amount)?, currency: currency.into() })
        });
        let is_told_again = matches!(self.state, State::Restoring(_))
            || (self.doubtful.is_some() && self.doubtful == self.row.host)
            // Earlier costs belong to no prompt of acpd.
            || self.row.prompts == 0;
        let when = match self.running {
            _ if is_told_again => When::Again,
            Some(_) => When::InTurn,
            None => When::BetweenTurns,
        };
        let mut known = self.row.usage.clone();
        let costs = known.told(Usage { used, size, cost }, when);
        if known != self.row.usage {
            self.row.edit().usage = known;
        }
        costs
    }
}

pub(crate) fn tokens_of(result: &RawValue) -> Tokens {
    let reported = TurnTokens::from_raw(result);
    Tokens {
        total: reported.total,
        input: reported.input,
        output: reported.output,
        thought: reported.thought,
        cached_read: reported.cached_read,
        cached_write: reported.cached_write,
    }
}
