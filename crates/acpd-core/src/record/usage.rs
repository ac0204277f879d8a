//! Usage of a session, as its agent reports it. `hub/session/turn_end.rs` derives the usage of turns.

use acpd_api::{Amount, Cost, Usage};
use serde::{Deserialize, Serialize};

/// Tokens and cost of a session. Stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    pub told: Usage,
    pub counter: Counter,
    pub turn: Option<Cost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// During a replay, which repeats earlier reports.
    Again,
    InTurn,
    /// Some agents report usage after the end of the turn.
    BetweenTurns,
}

impl Used {
    /// Takes a report. Returns costs outside of the running turn, to be booked at once.
    pub fn told(&mut self, told: Usage, when: When) -> Vec<Cost> {
        self.told.used = told.used.or(self.told.used);
        self.told.size = told.size.or(self.told.size);
        let Some(cost) = told.cost else { return Vec::new() };
        let grown = self.counter.told(&cost).filter(|_| when != When::Again);
        let currency = cost.currency.clone();
        self.told.cost = Some(cost);
        let Some(amount) = grown else { return Vec::new() };
        let in_old_currency = self.turn.take_if(|so_far| so_far.currency != currency);
        let so_far = self.turn.as_ref().map_or(Amount::default(), |so_far| so_far.amount);
        let cost = Cost { amount: so_far.plus(amount), currency };
        let mut of_no_turn = Vec::new();
        if when == When::InTurn {
            self.turn = Some(cost);
        } else if amount > Amount::default() {
            of_no_turn.push(cost);
        }
        of_no_turn.extend(in_old_currency);
        of_no_turn
    }
}

/// An agent's counter of a session's cost. It only grows while a process runs. The next process
/// continues it or restarts at zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// The session was used outside of acpd before.
    #[default]
    Unknown,
    /// Value of the last report.
    At(Cost),
    /// Last value of an earlier process; none for a new session.
    NewProcess(Option<Cost>),
}

impl Counter {
    /// Takes a report. Returns the growth, if it is known.
    pub fn told(&mut self, now: &Cost) -> Option<Amount> {
        let same = |before: &Cost| before.currency == now.currency;
        let grown = |before: &Cost| {
            Amount::from_parts(now.amount.parts().saturating_sub(before.amount.parts()))
        };
        let (stays, grown) = match self {
            Counter::Unknown => (false, None),
            Counter::At(before) if same(before) => {
                (now.amount < before.amount, Some(grown(before)))
            }
            Counter::NewProcess(Some(before)) if same(before) && before.amount <= now.amount => {
                (false, Some(grown(before)))
            }
            Counter::At(_) | Counter::NewProcess(_) => (false, Some(now.amount)),
        };
        // A lower figure from the same process is outdated.
        if !stays {
            *self = Counter::At(now.clone());
        }
        grown
    }

    pub fn moved(&mut self) {
        if let Counter::At(cost) = self {
            *self = Counter::NewProcess(Some(cost.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(units: f64) -> Cost {
        Cost { amount: Amount::from_units(units).unwrap(), currency: "USD".into() }
    }

    fn cost(cost: Cost) -> Usage {
        Usage { cost: Some(cost), ..Usage::default() }
    }

    #[test]
    fn what_a_turn_has_cost_in_another_currency_is_booked_when_the_currency_changes() {
        let mut used = Used { turn: Some(usd(3.0)), ..Used::default() };
        used.counter = Counter::At(usd(3.0));
        let eur = Cost { amount: Amount::from_parts(5), currency: "EUR".into() };
        assert_eq!(used.told(cost(eur.clone()), When::InTurn), [usd(3.0)]);
        assert_eq!(used.turn, Some(eur));
    }
}
