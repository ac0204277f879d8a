//! Counters for monitoring. They decide nothing and start at zero with each daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use acpd_api::{Latencies, Outcome};

use crate::timing::Timing;

#[derive(Debug)]
pub(crate) struct Tally {
    /// Ended turns by outcome. Unknown words of agents count as one.
    ended: BTreeMap<&'static str, u64>,
    pub(crate) expired: u64,
    turn: Timing,
    first_update: Timing,
    permission: Timing,
    agent_start: Timing,
}

impl Default for Tally {
    fn default() -> Tally {
        // All counters exist from the start: one that appears later has no beginning.
        let ended = Outcome::WORDS.into_iter().chain([Outcome::OTHER]);
        let ended = ended.map(|word| (word, 0)).collect();
        let [turn, first_update, permission, agent_start] = [(); 4].map(|()| Timing::slow());
        Tally { ended, expired: 0, turn, first_update, permission, agent_start }
    }
}

impl Tally {
    pub(crate) fn turn_ended(&mut self, outcome: &Outcome, ms: u64) {
        *self.ended.entry(Outcome::known_word(outcome.word())).or_default() += 1;
        self.turn.took(Duration::from_millis(ms));
    }

    pub(crate) fn first_update(&mut self, ms: Option<u64>) {
        if let Some(ms) = ms {
            self.first_update.took(Duration::from_millis(ms));
        }
    }

    pub(crate) fn permission(&mut self, ms: u64) {
        self.permission.took(Duration::from_millis(ms));
    }

    pub(crate) fn agent_start(&mut self, ms: u64) {
        self.agent_start.took(Duration::from_millis(ms));
    }

    pub(crate) fn ended(&self) -> BTreeMap<String, u64> {
        self.ended.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    pub(crate) fn latencies(&self) -> Latencies {
        Latencies {
            turn: self.turn.histogram(),
            first_update: self.first_update.histogram(),
            permission: self.permission.histogram(),
            agent_start: self.agent_start.histogram(),
            ..Latencies::default()
        }
    }
}
