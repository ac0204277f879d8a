//! `cargo xtask hosts`: cuts connections over a real ssh at random moments, and compares the output
//! of clients with the journal on the other side.
//!
//! In each round an agent behind sshd sends numbered lines. `acpctl --host box run` has prompted it,
//! and `acpctl --host box attach` follows. One to three times an ssh, a session of sshd or the
//! daemon there is killed. Then both clients must have each line once, in order, and no process of
//! a connection may be left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use acpd_test::harness::{Agent, Config, Sshd, TestEnv, chunk_text, kill9, seq_of, until};
use acpd_test::rng::Rng;
use clap::Args;
use serde_json::Value;

/// Lines of a turn, and the pause after each in microseconds.
const LINES: u64 = 60;
const PAUSE: u64 = 20_000;
/// Longest time between two cuts.
const GAP_MS: u64 = 400;

/// Cuts between two lines of progress.
const SHOWN: u64 = 100;

/// Options of the drill.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Number of cuts.
    #[arg(long, default_value_t = 100)]
    cuts: u64,
    /// Targets and times of cuts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first round: to see one again that failed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Pairs of homes at a time.
    #[arg(long, default_value_t = 4)]
    jobs: u32,
}

/// Plays rounds with the programs in `bins` until there were enough cuts, and prints their number.
pub fn run(options: &Options, bins: &Path) -> crate::Result {
    if let Some(missing) = Sshd::missing() {
        return Err(missing.into());
    }
    let start = Instant::now();
    let (next, tally) = (AtomicU64::new(options.from), Mutex::new(Tally::default()));
    let seed = options.seed;
    let work = || {
        let stage = Stage::new(bins);
        while tally.lock().is_ok_and(|tally| tally.lacks(options.cuts)) {
            let round = next.fetch_add(1, Ordering::Relaxed);
            let played = stage.play(round, Rng::of_round(seed, round));
            let Ok(mut tally) = tally.lock() else { return };
            match played {
                Ok(cuts) => tally.count(&cuts),
                Err(error) => {
                    tally.failure = Some(format!(
                        "round {round}: {error}\n  again: cargo xtask hosts --seed {seed} --from \
                         {round} --cuts 1 --jobs 1"
                    ));
                }
            }
        }
    };
    thread::scope(|scope| (0..options.jobs).for_each(|_| drop(scope.spawn(work))));
    let Tally { turns, cuts, kinds, failure } = tally.into_inner()?;
    let (lines, time) = (turns * LINES, start.elapsed().as_secs());
    println!("{cuts} cuts {kinds:?} in {turns} turns with {lines} lines, {time} s");
    failure.map_or(Ok(()), |failure| Err(failure.into()))
}

#[derive(Debug, Default)]
struct Tally {
    turns: u64,
    cuts: u64,
    /// Number of cuts by what was killed.
    kinds: BTreeMap<&'static str, u64>,
    failure: Option<String>,
}

impl Tally {
    fn lacks(&self, cuts: u64) -> bool {
        self.cuts < cuts && self.failure.is_none()
    }

    fn count(&mut self, cuts: &[&'static str]) {
        self.turns += 1;
        for kind in cuts {
            self.cuts += 1;
            *self.kinds.entry(kind).or_default() += 1;
            if self.cuts.is_multiple_of(SHOWN) {
                println!("{:>6} cuts", self.cuts);
            }
        }
    }
}

/// Two homes, and the way from one to the other. Fields are dropped in their order.
struct Stage {
    near: TestEnv,
    sshd: Sshd,
    far: TestEnv,
}

impl Stage {
    fn new(bins: &Path) -> Stage {
        let far = TestEnv::new(bins.join("acpd"), &Config::new([Agent::new("echo").unrecorded()]));
        let sshd = Sshd::start(&far);
        let keys = format!("start = true\n{}", Sshd::relay(&far));
        let table = sshd.table("box", &[], &keys);
        let near = TestEnv::new(bins.join("acpd"), &Config::new([]).tables(&table));
        Stage { near, sshd, far }
    }

    /// Plays a round, and returns what was killed.
    fn play(&self, round: u64, mut rng: Rng) -> Result<Vec<&'static str>, String> {
        let mut cuts = Vec::new();
        let name = format!("r{round}");
        let prompt = format!("[number {LINES} {name} {PAUSE}]");
        let mut asked = self.near.spawn_acpctl(&["--host", "box", "run", "-s", &name, &prompt]);
        asked.wait_stdout(&format!("{name}/1\n"));
        let mut follower = self.near.spawn_acpctl(&["--host", "box", "attach", "--json", &name]);
        follower.wait_stdout(&format!("{name}/1\\n"));
        for _ in 0..=rng.below(3) {
            thread::sleep(Duration::from_millis(rng.below_u64(GAP_MS)));
            cuts.push(self.cut(&mut rng));
        }
        let done = asked.finish();
        compare("run", &name, done.stdout()).map_err(|error| format!("{error}\n{done:?}"))?;
        compare("the journal", &name, &self.far.said(&name))?;
        follower.wait_stdout("\"_acpd/turn_ended\"");
        follower.interrupt();
        let followed = follower.finish();
        if !followed.code_is(0) || !done.code_is(0) {
            return Err(format!("a client failed: {done:?} {followed:?}"));
        }
        let lines = followed.stdout().lines().map(serde_json::from_str::<Value>);
        let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        if !lines.iter().filter_map(seq_of).is_sorted_by(|one, next| one < next) {
            return Err(format!("attach: numbers are not in order: {followed:?}"));
        }
        let text: String = lines.iter().filter_map(chunk_text).collect();
        compare("attach", &name, &text)?;
        self.sshd.wait_unused(&self.near, &self.far);
        Ok(cuts)
    }

    /// Kills one process, as soon as there is one of its kind.
    fn cut(&self, rng: &mut Rng) -> &'static str {
        let (kind, find): (_, &dyn Fn() -> Vec<u32>) = match rng.below(5) {
            0 | 1 => ("ssh", &|| Sshd::clients(&self.near)),
            2 | 3 => ("session", &|| self.sshd.sessions()),
            _ => {
                self.far.kill_daemon();
                return "daemon";
            }
        };
        kill9(until(kind, || rng.pick(&find()).copied()));
        kind
    }
}

/// Compares the numbered lines of a text with those of the whole turn.
fn compare(what: &str, name: &str, text: &str) -> Result<(), String> {
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{name}/"))).collect();
    let all: Vec<_> = (1..=LINES).map(|n| format!("{name}/{n}")).collect();
    if lines == all { Ok(()) } else { Err(format!("{what} has other lines: {lines:?}")) }
}
