//! What a session has used, as far as its agent tells. How that becomes what turns have used is in
//! `hub/session/usage.rs`.

use acpd_api::{Amount, Cost, Usage};
use serde::{Deserialize, Serialize};

/// What is known of a session's tokens and cost. Stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// What the agent has told last.
    pub told: Usage,
    /// Its counter of the cost.
    pub counter: Counter,
    /// What the running turn has cost so far.
    pub turn: Option<Cost>,
}

/// An agent's counter of what a session has cost. It only grows while a process runs; the next process may
/// continue it or begin anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// It is not known where it stands: somebody else has used the session before.
    #[default]
    Unknown,
    /// Where it stood when the agent told it last.
    At(Cost),
    /// Where it stood in an earlier process; nowhere in a session that begins.
    NewProcess(Option<Cost>),
}

impl Counter {
    /// The agent tells the cost; returns by how much it has grown, if that is known.
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
        // A lower figure of the same process is an old one.
        if !stays {
            *self = Counter::At(now.clone());
        }
        grown
    }

    /// Another process has the session from now on.
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

    fn grown(counter: &mut Counter, units: f64) -> Option<f64> {
        counter.told(&usd(units)).map(Amount::units)
    }

    #[test]
    fn a_counter_that_grows_counts_the_difference_and_an_old_figure_nothing() {
        let mut counter = Counter::NewProcess(None);
        assert_eq!(grown(&mut counter, 0.25), Some(0.25));
        assert_eq!(grown(&mut counter, 0.25), Some(0.0));
        assert_eq!(grown(&mut counter, 0.10), Some(0.0));
        assert_eq!(grown(&mut counter, 0.50), Some(0.25));
    }

    #[test]
    fn the_next_process_continues_the_counter_or_begins_anew() {
        let mut counter = Counter::At(usd(0.5));
        counter.moved();
        assert_eq!(grown(&mut counter, 0.75), Some(0.25), "continued");
        counter.moved();
        assert_eq!(grown(&mut counter, 0.125), Some(0.125), "begun anew");
        assert_eq!(grown(&mut counter, 0.25), Some(0.125));
    }

    #[test]
    fn what_a_session_cost_before_acpd_is_not_counted() {
        let mut counter = Counter::default();
        counter.moved();
        assert_eq!(grown(&mut counter, 7.0), None);
        assert_eq!(grown(&mut counter, 7.5), Some(0.5));
    }

    #[test]
    fn another_currency_is_another_counter() {
        let mut counter = Counter::At(usd(3.0));
        let eur = Cost { amount: Amount::from_parts(5), currency: "EUR".into() };
        assert_eq!(counter.told(&eur), Some(Amount::from_parts(5)));
    }
}
