//! Many seeds of the simulator. See `acpd_test::sim`.
//!
//! `ACPD_SIM_SEED` runs one seed, `ACPD_SIM_SEEDS` the first N or a range (`2000..5000`),
//! `ACPD_SIM_STEPS` N steps of each;
//! with `ACPD_SIM_TRACE` a failure ends with what happened last. With `ACPD_SIM_DIGESTS=FILE` the digests of
//! each seed are written to that file: two versions of the hub that behave the same write the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use acpd_test::sim;

/// Seeds that found something once, with their steps: run first, always.
const REGRESSIONS: &str = include_str!("simulation.seeds");
/// Enough to meet every fault many times, and to be done in a minute without optimization.
const SEEDS: u64 = 400;
const STEPS: u64 = 4_000;

/// Events that the seeds together need not meet.
const RARE: [&str; 19] = [
    "answer of a client that does not count",
    "answer that tells no outcome",
    "answer to a client with a token",
    "attached to another session by the beginning of its id",
    "client came back too late",
    "daemon aborted",
    "expiry logged",
    "failure logged",
    "hook run",
    "left behind, as it does not answer",
    "notified",
    "odd line noted",
    "permission offered",
    "permission refused",
    "process gone",
    "process started",
    "summary asked for",
    "told as partial",
    "trace begun",
];

/// Names of all events, from the source of the simulator.
fn events() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sim");
    let mut events = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for call in text.split("hit(").skip(1) {
            let pieces: Vec<&str> = call.split(';').next().unwrap().split('"').collect();
            let named = pieces
                .chunks_exact(2)
                .filter(|piece| piece[0].trim().is_empty() || piece[0].ends_with("=> "));
            events.extend(named.map(|piece| piece[1].to_owned()));
        }
    }
    events
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn wanted_seeds() -> Range<u64> {
    let Ok(wanted) = std::env::var("ACPD_SIM_SEEDS") else { return 0..SEEDS };
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    let seed = |text: &str| text.parse().expect("`ACPD_SIM_SEEDS` is N or FIRST..END");
    seed(first)..seed(end)
}

/// Returns the events of a run, or the violation and how to see it again.
fn try_seed(seed: u64, steps: u64) -> Result<sim::Report, String> {
    let watch = sim::Watch {
        trace: std::env::var_os("ACPD_SIM_TRACE").is_some(),
        digest: std::env::var_os("ACPD_SIM_DIGESTS").is_some(),
    };
    let failure = match catch_unwind(AssertUnwindSafe(|| sim::run(seed, steps, watch))) {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err(broken)) => broken,
        Err(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default(),
    };
    Err(format!(
        "seed {seed}: {failure}\nto see it again: ACPD_SIM_SEED={seed} ACPD_SIM_STEPS={steps} \
         cargo test -p acpd-test --features sim --test simulation\n\
         then add `{seed} {steps}` to tests/simulation.seeds"
    ))
}

/// Runs all of them, on as many threads as the machine has; the reports in the order of the seeds.
fn try_seeds(seeds: &[(u64, u64)]) -> Vec<sim::Report> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut reports = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(seed, steps)) = seeds.get(at) else { return Ok(reports) };
            reports.push((
                at,
                try_seed(seed, steps).inspect_err(|_| {
                    // One failure is enough: the other threads end after the seed that they are at.
                    next.store(seeds.len(), Ordering::Relaxed);
                })?,
            ));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcomes: Vec<Result<Vec<_>, String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught")).collect()
    });
    let mut reports = Vec::new();
    for outcome in outcomes {
        reports.extend(outcome.unwrap_or_else(|failure| panic!("{failure}")));
    }
    reports.sort_by_key(|(at, _)| *at);
    reports.into_iter().map(|(_, report)| report).collect()
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
        seeds.extend(wanted_seeds().map(|seed| (seed, steps)));
    }
    let start = Instant::now();
    // In how many runs, and how often.
    let mut hits: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    let mut done = 0;
    let mut digests = Vec::new();
    for (report, (seed, steps)) in try_seeds(&seeds).into_iter().zip(&seeds) {
        done += report.steps;
        if let Some(sim::Digests { wire, state }) = report.digests {
            writeln!(digests, "{seed} {steps} wire {wire:016x} state {state:016x}").unwrap();
        }
        for (what, times) in report.hits {
            let hit = hits.entry(what).or_default();
            *hit = (hit.0 + 1, hit.1 + times);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    if let Some(file) = std::env::var_os("ACPD_SIM_DIGESTS") {
        fs::write(file, digests).unwrap();
    }
    let (runs, speed) = (seeds.len(), done as f64 / seconds);
    let mut out = std::io::stdout().lock();
    let rate = runs as f64 / seconds;
    writeln!(out, "{runs} seeds, {done} steps, {rate:.0} seeds/s, {speed:.0} steps/s").ok();
    writeln!(out, "     runs     times").ok();
    for (what, (runs, times)) in &hits {
        writeln!(out, "{runs:>9} {times:>9}  {what}").ok();
    }
    if seeds.len() >= SEEDS as usize {
        let mut missing = events();
        assert!(missing.len() > 120, "{missing:?}");
        missing.retain(|what| !hits.contains_key(&**what) && !RARE.contains(&&**what));
        assert!(missing.is_empty(), "never met: {missing:?}");
    }
}

#[test]
fn digests_repeat_for_a_seed_and_differ_between_seeds() {
    let watch = sim::Watch { digest: true, ..sim::Watch::default() };
    let digests = |seed| sim::run(seed, 300, watch).expect("a clean seed").digests;
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1), digests(2));
}
