//! Many seeds of the simulator. See `acpd_test::sim`.
//!
//! `ACPD_SIM_SEED` runs one seed, `ACPD_SIM_SEEDS` the first N or a range (`2000..5000`),
//! `ACPD_SIM_STEPS` N steps of each;
//! with `ACPD_SIM_TRACE` a failure ends with what happened last. With `ACPD_SIM_DIGESTS=FILE` the digests of
//! each seed are written to that file: two versions of the hub that behave the same write the same file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use acpd_test::sim;

/// Seeds that found something once, with their steps: run first, always.
const REGRESSIONS: &str = include_str!("simulation.seeds");
/// Enough to meet every fault many times, and to be done in a minute without optimization.
const SEEDS: u64 = 400;
const STEPS: u64 = 4_000;

/// Events that the seeds together must have met.
const MUST_OCCUR: &[&str] = &[
    "adopted",
    "adopted inside a long line",
    "adopted with output",
    "adoption failed",
    "agent crash",
    "agent crash without a daemon",
    "agent held back",
    "agent hung",
    "agent stopped reading",
    "agent went on without a daemon",
    "answer before its batch is written",
    "answer while the store fails",
    "brought back",
    "cancel ignored",
    "client came back",
    "client closed",
    "client lagged",
    "client let go for lagging",
    "client never came back",
    "client refused",
    "clock jumped forward",
    "clock set back between two daemons",
    "context seen to be whole",
    "crash loop",
    "daemon crash",
    "daemon crash between commit and effect",
    "daemon restarted",
    "daemon stopped",
    "deleted in an editor",
    "directory missing",
    "forked",
    "garbage line",
    "given up by a person",
    "given up in the end",
    "host killed",
    "host killed with output",
    "initialize never answered",
    "killed",
    "late replay",
    "left behind, as it does not end",
    "line for an agent taken already",
    "line over the limit",
    "load failed for now",
    "load never answered",
    "load of an unknown session",
    "load that fails for ever",
    "loaded with replay",
    "logged in by a client",
    "logged in in a terminal",
    "login came by itself",
    "login seen in its file",
    "login wanted at initialize",
    "login wanted by a load",
    "login wanted by a new session",
    "login wanted by a prompt",
    "login wanted by a resume",
    "login wanted in other words",
    "message becomes a prompt",
    "message came too late",
    "message given back",
    "message not taken",
    "message said to be taken",
    "message taken into a turn",
    "new session never answered",
    "nothing to adopt",
    "old connection closed",
    "outcome of a turn unknown",
    "answer to a call as it is",
    "call changed while it was asked about",
    "permission cancelled",
    "permission granted",
    "permission withdrawn",
    "piece of journal read",
    "promised method is not there",
    "promised method takes nothing",
    "prompt answered",
    "prompt answered with nothing",
    "prompt cancelled",
    "prompt failed",
    "prompt never answered",
    "prompt sent again under its key",
    "prompt taken without its context by a liar",
    "resume never answered",
    "resumed",
    "session brought back without its context",
    "session forgotten by a running agent",
    "session lost",
    "session moved",
    "session put away",
    "session put away by its own client",
    "session not restored for now",
    "session titled",
    "session used elsewhere",
    "session waits for a login",
    "session without its directory",
    "something else never answered",
    "start refused",
    "start waited for its turn",
    "store failing",
    "success with nothing",
    "summary before a prompt",
    "survived SIGKILL",
    "told as begun anew",
    "told as loaded",
    "told as lost",
    "told as reseeded",
    "told as resumed",
    "turn interrupted",
    "turn refused",
    "turn unwedged",
    "update before the session was made",
    "watched rows read",
    "watcher knows everything",
    "watcher went away",
];

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
        std::fs::write(file, digests).unwrap();
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
        let missing: Vec<_> = MUST_OCCUR.iter().filter(|what| !hits.contains_key(*what)).collect();
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
