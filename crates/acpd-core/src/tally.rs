//! Counters for monitoring. They decide nothing and start at zero with each daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use acpd_api::{Bucket, Histogram, Latencies, Outcome};

/// Upper limits for people and models, in milliseconds.
const SLOW: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000];
/// Upper limits for this machine's own work, in microseconds.
const QUICK: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000,
];
const MICROS: f64 = 1e6;
const MILLIS: f64 = 1e3;

#[derive(Debug)]
pub(crate) struct Tally {
    /// Ended turns by outcome. Unknown words of agents count as one.
    ended: BTreeMap<&'static str, u64>,
    pub(crate) expired: u64,
    turn: Timing,
    first_update: Timing,
    pub(crate) permission: Timing,
    pub(crate) agent_start: Timing,
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
        self.turn.took_ms(ms);
    }

    pub(crate) fn first_update(&mut self, ms: Option<u64>) {
        if let Some(ms) = ms {
            self.first_update.took_ms(ms);
        }
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

#[derive(Debug)]
pub struct Timing {
    limits: &'static [u64],
    /// Units per second.
    per_second: f64,
    /// Counts of each bucket alone; the last one is above all limits.
    counts: Vec<u64>,
    sum: u64,
}

impl Timing {
    /// For durations from a tenth of a second to an hour.
    pub fn slow() -> Timing {
        Timing::new(SLOW, MILLIS)
    }

    /// For durations from a tenth of a millisecond to seconds.
    pub fn quick() -> Timing {
        Timing::new(QUICK, MICROS)
    }

    fn new(limits: &'static [u64], per_second: f64) -> Timing {
        Timing { limits, per_second, counts: vec![0; limits.len() + 1], sum: 0 }
    }

    pub fn took(&mut self, time: Duration) {
        let time = (time.as_secs_f64() * self.per_second).round() as u64;
        let place = self.limits.partition_point(|limit| *limit < time);
        self.counts[place] += 1;
        self.sum = self.sum.saturating_add(time);
    }

    pub(crate) fn took_ms(&mut self, ms: u64) {
        self.took(Duration::from_millis(ms));
    }

    pub fn histogram(&self) -> Histogram {
        let mut count = 0;
        let buckets = self.limits.iter().zip(&self.counts).map(|(limit, own)| {
            count += own;
            Bucket { le: *limit as f64 / self.per_second, count }
        });
        let (buckets, sum) = (buckets.collect(), self.sum as f64 / self.per_second);
        Histogram { buckets, sum, count: self.counts.iter().sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_counts_what_is_at_most_its_limit() {
        let mut timing = Timing::slow();
        for ms in [0, 100, 101, 3_600_000, 3_600_001] {
            timing.took(Duration::from_millis(ms));
        }
        let Histogram { buckets, sum, count } = timing.histogram();
        let at =
            |le: f64| buckets.iter().find(|bucket| (bucket.le - le).abs() < 1e-9).unwrap().count;
        assert_eq!((at(0.1), at(0.25), at(900.0), at(3600.0), count), (2, 3, 3, 4, 5));
        assert!((sum - 7200.202).abs() < 1e-9, "{sum}");
    }
}
