//! Many seeds of the simulator. See `acpd_test::sim`.
//!
//! `ACPD_SIM_SEED` runs one seed, `ACPD_SIM_SEEDS` so many, `ACPD_SIM_STEPS` so many steps of each;
//! with `ACPD_SIM_TRACE` a failure ends with what happened last.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use acpd_test::sim;

/// Seeds that found something once, with their steps: run first, always.
const REGRESSIONS: &str = include_str!("simulation.seeds");
/// Enough to meet every fault many times, and to be done in a minute without optimization.
const SEEDS: u64 = 400;
const STEPS: u64 = 4_000;

/// What the seeds together must have met.
const MUST_OCCUR: &[&str] = &[
    "adopted inside a long line",
    "adopted with output",
    "adopted",
    "adoption failed",
    "agent crash without a daemon",
    "agent crash",
    "agent held back",
    "agent hung",
    "agent wanted a login",
    "agent went on without a daemon",
    "answer while the store fails",
    "cancel ignored",
    "client came back",
    "client closed",
    "client lagged",
    "client let go for lagging",
    "client never came back",
    "client refused",
    "daemon crash between commit and effect",
    "daemon crash",
    "daemon restarted",
    "daemon stopped",
    "forked",
    "garbage line",
    "host killed with output",
    "host killed",
    "killed",
    "late replay",
    "line for an agent taken already",
    "line over the limit",
    "load failed for now",
    "load of an unknown session",
    "loaded with replay",
    "nothing to adopt",
    "permission cancelled",
    "permission granted",
    "permission withdrawn",
    "piece of journal read",
    "prompt answered",
    "prompt cancelled",
    "prompt failed",
    "resumed",
    "session used elsewhere",
    "start refused",
    "start waited for its turn",
    "store failing",
    "update before the session was made",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn try_seed(seed: u64, steps: u64) -> sim::Report {
    let trace = std::env::var_os("ACPD_SIM_TRACE").is_some();
    let failure = match catch_unwind(AssertUnwindSafe(|| sim::run(seed, steps, trace))) {
        Ok(Ok(report)) => return report,
        Ok(Err(broken)) => broken,
        Err(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default(),
    };
    panic!(
        "seed {seed}: {failure}\nto see it again: ACPD_SIM_SEED={seed} ACPD_SIM_STEPS={steps} \
         cargo test -p acpd-test --features sim --test simulation\n\
         then add `{seed} {steps}` to tests/simulation.seeds"
    );
}

#[test]
fn the_hub_keeps_its_promises_whatever_breaks() {
    let steps = number("ACPD_SIM_STEPS").unwrap_or(STEPS);
    let mut seeds: Vec<(u64, u64)> = Vec::new();
    if let Some(seed) = number("ACPD_SIM_SEED") {
        seeds.push((seed, steps));
    } else {
        let known = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
        seeds.extend(known.filter_map(|line| {
            let (seed, steps) = line.split_once(' ')?;
            Some((seed.parse().ok()?, steps.parse().ok()?))
        }));
        seeds.extend((0..number("ACPD_SIM_SEEDS").unwrap_or(SEEDS)).map(|seed| (seed, steps)));
    }
    let start = Instant::now();
    let mut hits: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut done = 0;
    for &(seed, steps) in &seeds {
        let report = try_seed(seed, steps);
        done += report.steps;
        for (what, times) in report.hits {
            *hits.entry(what).or_default() += times;
        }
    }
    let speed = done as f64 / start.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} seeds, {done} steps, {speed:.0} steps/s", seeds.len()).ok();
    for (what, times) in &hits {
        writeln!(out, "{times:>9}  {what}").ok();
    }
    if seeds.len() >= SEEDS as usize {
        let missing: Vec<_> = MUST_OCCUR.iter().filter(|what| !hits.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never met: {missing:?}");
    }
}
