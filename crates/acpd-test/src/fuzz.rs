//! Fuzzers: checks with random inputs, each made from a seed. Tests run each fuzzer for a moment;
//! `cargo xtask fuzz` runs them for any time.
//!
//! proptest makes the inputs and shrinks those that fail. This module counts executions (lines or
//! frames, not inputs) and their outcomes, so that a fuzzer that reaches nothing fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Least number of executions.
pub const RUNS: &str = "ACPD_FUZZ_RUNS";
/// The seed of the first input; each further one has the next number.
pub const SEED: &str = "ACPD_FUZZ_SEED";
/// Minutes, instead of a number of executions.
pub const MINUTES: &str = "ACPD_FUZZ_MINUTES";

/// No input takes this long, even on a slow machine.
const HANGS: Duration = Duration::from_secs(20);
/// Number of executions after which a missing outcome is a failure.
const ENOUGH: u64 = 1_000;
/// Most outcomes that are counted separately: the names of some are random.
const MOST: usize = 100;

#[derive(Debug, Default)]
pub struct Outcomes {
    counts: RefCell<BTreeMap<String, u64>>,
    executions: RefCell<u64>,
}

impl Outcomes {
    pub fn execution(&self) {
        *self.executions.borrow_mut() += 1;
    }

    pub fn met(&self, outcome: &str) {
        let mut counts = self.counts.borrow_mut();
        let is_known = counts.contains_key(outcome) || counts.len() < MOST;
        let outcome = if is_known { outcome } else { "something else" };
        match counts.get_mut(outcome) {
            Some(count) => *count += 1,
            None => drop(counts.insert(outcome.to_owned(), 1)),
        }
    }
}

/// Checks inputs until there were `runs` executions, or as many as the environment says. A failing
/// check panics.
///
/// # Panics
/// With the smallest failing input and its seed; if an input takes very long; or if one of
/// `must_occur` is missing after `ENOUGH` executions.
pub fn fuzz<S: Strategy>(
    name: &str,
    runs: u64,
    must_occur: &[&str],
    inputs: S,
    check: impl Fn(S::Value, &Outcomes),
) {
    let number = |variable| env::var(variable).ok().map(|text| text.parse().expect(variable));
    let first: u64 = number(SEED).unwrap_or(1);
    let runs = number(RUNS).unwrap_or(runs);
    let minutes = number(MINUTES).map(|minutes: u64| Duration::from_secs(60 * minutes));
    let (start, outcomes) = (Instant::now(), Outcomes::default());
    let mut slowest = (Duration::ZERO, first);
    let done = || *outcomes.executions.borrow();
    for seed in first.. {
        let timed = || {
            let before = Instant::now();
            one(name, seed, &inputs, |input| check(input, &outcomes));
            before.elapsed()
        };
        // Measured again if it was slow: the machine may have slept.
        let took = Some(timed()).filter(|took| *took < HANGS).unwrap_or_else(timed);
        slowest = slowest.max((took, seed));
        assert!(took < HANGS, "{name}: the input of seed {seed} took {took:?}");
        if minutes.map_or(done() >= runs, |minutes| start.elapsed() >= minutes) {
            break;
        }
    }
    let (executions, counts) = (done(), outcomes.counts.into_inner());
    let rate = executions as f64 / start.elapsed().as_secs_f64();
    let mut report = format!(
        "{name}: {executions} executions, {rate:.0} in a second, {} outcomes; the slowest input, of seed {}, took {:?}\n",
        counts.len(),
        slowest.1,
        slowest.0,
    );
    for (outcome, count) in &counts {
        let _ = writeln!(report, "{count:>12} {outcome}");
    }
    let _ = io::stderr().write_all(report.as_bytes());
    let missing = must_occur.iter().filter(|outcome| !counts.contains_key(**outcome));
    let missing: Vec<_> = missing.collect();
    assert!(executions < ENOUGH || missing.is_empty(), "{name} met none of {missing:?}");
}

/// Checks the input of a seed, and smaller ones if it fails.
fn one<S: Strategy>(name: &str, seed: u64, inputs: &S, check: impl Fn(S::Value)) {
    let config = Config {
        cases: 1,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        max_shrink_time: 120_000,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(inputs, |input| {
        check(input);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{name}, seed {seed}: {error}");
    }
}

/// Random bytes for each line of an input with a maximum number of lines.
pub fn throws(lines: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let dice = prop::collection::vec(any::<u8>(), 0..32);
    prop::collection::vec(dice, 1..lines)
}

/// Random choices from these bytes, in order; after the last one every choice is 0, which changes
/// nothing.
#[derive(Debug, Clone)]
pub struct Dice<'a>(pub &'a [u8]);

impl Dice<'_> {
    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        if n <= 256 {
            return usize::from(*first) % n;
        }
        (usize::from(*first) << 8 | self.below(256)) % n
    }

    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}
