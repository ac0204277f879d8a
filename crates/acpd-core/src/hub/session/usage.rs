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
use acpd_api::{Amount, Cost, Tokens, TurnUsage, Usage};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::hub::Hub;
use crate::ids::{SessionKey, Time};
use crate::input::Batch;
use crate::params::raw_at;
use crate::record::{Record, UsageRow, When};
use crate::session::{State, limit};

impl Hub {
    /// The agent tells how full the context is, what the session has cost, and maybe a limit.
    pub(crate) fn note_usage(&mut self, key: SessionKey, line: &Bytes, out: &mut Batch) {
        if let Some(limit) = limit::told(line) {
            self.session_mut(key).limit = Some(limit);
        }
        let Some(update) = raw_at(line, &["params", "update"]) else { return };
        let UsageUpdate { used, size, cost } = UsageUpdate::from_raw(update);
        let cost = cost.and_then(|(amount, currency)| {
            Some(Cost { amount: Amount::from_units(amount)?, currency: currency.into() })
        });
        let session = self.session(key);
        let is_told_again = matches!(session.state, State::Restoring(_))
            || (session.doubtful.is_some() && session.doubtful == session.row.host)
            // Earlier cost was for no prompt of acpd.
            || session.row.prompts == 0;
        let when = match session.running {
            _ if is_told_again => When::Again,
            Some(_) => When::InTurn,
            None => When::BetweenTurns,
        };
        let mut known = session.row.usage.clone();
        let costs = known.told(Usage { used, size, cost }, when);
        if known != session.row.usage {
            self.session_mut(key).row.edit().usage = known;
        }
        for cost in costs {
            self.book(key, None, Tokens::default(), Some(cost), out);
        }
    }

    /// A turn is over.
    pub(crate) fn book_turn(
        &mut self,
        key: SessionKey,
        turn: u64,
        tokens: Tokens,
        out: &mut Batch,
    ) -> Option<TurnUsage> {
        let cost = self.session_mut(key).row.edit().usage.turn.take();
        self.book(key, Some(turn), tokens, cost.clone(), out);
        (!tokens.is_empty() || cost.is_some()).then_some(TurnUsage { tokens, cost })
    }

    fn book(
        &mut self,
        key: SessionKey,
        turn: Option<u64>,
        tokens: Tokens,
        cost: Option<Cost>,
        out: &mut Batch,
    ) {
        let row = &self.session(key).row;
        let used = UsageRow {
            at: self.now,
            day: self.day(),
            agent: row.agent.clone(),
            session: row.public_id.clone(),
            cwd: row.cwd.clone(),
            turn,
            tokens,
            cost,
        };
        self.budget.book(&used, self.config.budget.as_ref());
        out.records.push(Record::Usage(used));
        self.tell_budget(key, out);
    }

    pub(crate) fn day(&self) -> Time {
        let now = Timestamp::from_millisecond(self.now.0 as i64).ok();
        let zoned = now.map(|now| now.to_zoned((self.config.time_zone)()));
        let began = zoned.and_then(|now| now.start_of_day().ok());
        began.map_or(self.now, |began| Time(began.timestamp().as_millisecond() as u64))
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
