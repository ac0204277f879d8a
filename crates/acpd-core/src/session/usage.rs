//! Usage of turns, as agents report it: tokens at the end of a turn, and the session's cost at any
//! time.
//!
//! The cost is a counter of the agent, so what a turn has cost is by how much it has grown
//! ([`crate::record::Counter`]). What an agent tells while it brings a session back is where the counter
//! stands, and counts nothing: it was told before.
//!
//! Architecture invariant: what was used is written once, with the end of its turn, and outlives its session:
//! who deletes a session has spent the money nevertheless.

use acp_wire::acp::{TurnTokens, UsageUpdate};
use acpd_api::{Amount, Cost, Tokens, Usage};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::params::raw_at;
use crate::record::When;
use crate::session::{Session, State, limit};

impl Session {
    /// Notes how full the context is, what the session has cost, and maybe a limit, as the agent reports them.
    /// Returns costs that are of no turn.
    pub(crate) fn note_usage(&mut self, line: &Bytes) -> Vec<Cost> {
        if let Some(limit) = limit::told(line) {
            self.limit = Some(limit);
        }
        let Some(update) = raw_at(line, &["params", "update"]) else { return Vec::new() };
        let UsageUpdate { used, size, cost } = UsageUpdate::from_raw(update);
        let cost = cost.and_then(|(amount, currency)| {
            Some(Cost { amount: Amount::from_units(amount)?, currency: currency.into() })
        });
        let is_told_again = matches!(self.state, State::Restoring(_))
            || (self.doubtful.is_some() && self.doubtful == self.row.host)
            // Earlier cost was for no prompt of acpd.
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

/// The tokens that an agent tells with the end of a turn.
pub(crate) fn tokens_of(result: &RawValue) -> Tokens {
    let told = TurnTokens::from_raw(result);
    Tokens {
        total: told.total,
        input: told.input,
        output: told.output,
        thought: told.thought,
        cached_read: told.cached_read,
        cached_write: told.cached_write,
    }
}
