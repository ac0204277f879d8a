//! The soak (`cargo xtask soak`): eight agents and sixteen clients for a long time, to find growth.
//!
//! Each client begins a session, floods it with the work of `clients.rs`, deletes it or leaves it
//! to the limits of the configuration, and begins the next one. Meanwhile agents and shims are
//! killed, the limits are applied, and backups are made. The daemon, the shims and the files are
//! measured many times:
//!
//! ```text
//!  0 ─────────────── a third ──────────────── two thirds ─────────────── the end
//!  the daemon is killed and   its figures are the     its figures must not be
//!  restarted, too             measure                 more than that, but for noise
//! ```
//!
//! The daemon itself is killed only while it gets warm: growth shows only over a whole life. At the
//! end no process is left, and none was a zombie for longer than a moment.
#![expect(clippy::print_stdout, reason = "a program for developers")]

mod clients;
mod figures;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::{StopSignal, signal_one};
use clap::Args;

use self::figures::{Figures, Series};
use crate::home::Result;
use crate::home::{Home, kill_tree};
use crate::lock;
use crate::rng::Rng;

const AGENTS: u64 = 8;
const CLIENTS: u64 = 16;
const LOOKS: u32 = 90;
/// Measurements per printed one.
const SHOWN: u32 = 6;
/// Longest pause between two kills (ms).
const LULL: u64 = 1500;
/// Number of kills per kill of the daemon, while it gets warm.
const DAEMONS: u64 = 12;

/// Pause between two calls of `acpctl gc`; a backup follows every third one.
const TIDY: Duration = Duration::from_secs(5);

/// Options of the soak.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Minutes that the soak runs.
    #[arg(long, default_value_t = 30.0)]
    pub minutes: f64,
    /// Kills, and the work of clients.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep the home after the run.
    #[arg(long)]
    pub keep: bool,
}

/// Runs the soak with the programs in `bins`, and prints the figures. Fails if a figure has grown,
/// or a process is left at the end.
pub fn run(options: &Options, bins: &Path) -> Result {
    let mut home = Home::new(bins)?;
    if options.keep {
        home.keep();
        println!("{}", home.path("").display());
    }
    home.configure(&configuration(&home))?;
    home.read(&["daemon", "start"])?;
    let mut soak = Soak {
        home,
        seed: options.seed,
        warming: AtomicBool::new(true),
        over: Over::default(),
        counts: Mutex::default(),
        failure: Mutex::default(),
    };
    let time = Duration::from_secs_f64(options.minutes * 60.0);
    let series = thread::scope(|scope| {
        for n in 0..CLIENTS {
            let soak = &soak;
            scope.spawn(move || clients::run(soak, n));
        }
        scope.spawn(|| soak.kill());
        scope.spawn(|| soak.tidy());
        let series = soak.watch(time);
        soak.over.set();
        series
    })?;
    series.print();
    soak.print();
    let failure = lock(&soak.failure).take();
    if let Some(failure) = failure {
        soak.home.keep();
        return Err(format!("{failure}\nhome: {}", soak.home.path("").display()).into());
    }
    soak.home.stop()?;
    series.check()
}

fn configuration(home: &Home) -> String {
    let mut text = "default_agent = \"soak0\"\n\
        [daemon]\nkeep_deleted = \"0s\"\nlog_max_bytes = \"1MiB\"\n\
        [retention]\nmax_sessions = 30\nmax_size = \"64MiB\"\n\
        [defaults]\nstop.eof = \"200ms\"\nstop.term = \"200ms\"\nstop.leftovers = \"50ms\"\n\
        restart_delay = \"10ms\"\nrestart_max_delay = \"50ms\"\nrestart_budget = 1000000\nready_after = \"1ms\"\n"
        .to_owned();
    for n in 0..AGENTS {
        let state = home.path(&format!("agent{n}"));
        let command = serde_json::json!([home.program("acpd-scripted-agent"), "--state", state]);
        text.extend(["[agents.soak", &n.to_string(), "]\ncommand = ", &command.to_string(), "\n"]);
    }
    text
}

struct Soak {
    home: Home,
    seed: u64,
    /// Set while the daemon may be killed.
    warming: AtomicBool,
    over: Over,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    failure: Mutex<Option<String>>,
}

/// Set at the end; threads may wait for it.
#[derive(Debug, Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    fn set(&self) {
        *lock(&self.is_over) = true;
        self.changed.notify_all();
    }

    fn is_set(&self) -> bool {
        *lock(&self.is_over)
    }

    fn wait(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(lock(&self.is_over), time, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Soak {
    fn count(&self, what: &'static str, more: usize) {
        *lock(&self.counts).entry(what).or_default() += more;
    }

    /// Notes a failure, with the figures of this moment.
    fn fail(&self, what: String) {
        let mut failure = lock(&self.failure);
        if failure.is_none() {
            let stands =
                self.home.read(&["status", "--all"]).unwrap_or_else(|error| error.to_string());
            *failure = Some(format!("{what}\n\n{stands}"));
        }
        drop(failure);
        self.over.set();
    }

    fn kill(&self) {
        let mut rng = Rng::of_round(self.seed, u64::MAX);
        while !self.over.wait(Duration::from_millis(rng.below_u64(LULL))) {
            let warming = self.warming.load(Ordering::Relaxed);
            if warming && rng.below_u64(DAEMONS) == 0 {
                if rng.below_u64(2) == 0 {
                    self.home.acpctl(&["daemon", "restart"]).output().ok();
                } else if let Ok(daemon) = self.home.daemon() {
                    signal_one(daemon, StopSignal::Kill);
                }
                self.count("daemons", 1);
                continue;
            }
            // Processes that start or end at this moment are skipped.
            let Ok(leader) = self.home.agent(&format!("soak{}", rng.below_u64(AGENTS))) else {
                continue;
            };
            match self.home.shim(leader.pid).filter(|_| rng.below_u64(3) == 0) {
                Some(shim) => {
                    signal_one(shim, StopSignal::Kill);
                    self.count("shims", 1);
                }
                None => {
                    kill_tree(leader);
                    self.count("agents", 1);
                }
            }
        }
    }

    fn tidy(&self) {
        let backup = self.home.path("backup").display().to_string();
        for round in 1_u32.. {
            if self.over.wait(TIDY) {
                return;
            }
            let warming = self.warming.load(Ordering::Relaxed);
            match self.home.read_json(&["gc", "--yes"]) {
                Ok(gone) => {
                    self.count("expired", gone["sessions"].as_array().map_or(0, Vec::len));
                }
                // The daemon was killed meanwhile.
                Err(_) if warming => {}
                Err(error) => self.fail(format!("acpctl gc: {error}")),
            }
            if round.is_multiple_of(3) {
                match self.home.read(&["backup", &backup]) {
                    Ok(_) => self.count("backups", 1),
                    Err(error) => self.fail(format!("acpctl backup: {error}")),
                }
            }
        }
    }

    fn watch(&self, time: Duration) -> Result<Series> {
        let start = Instant::now();
        let mut series = Series::default();
        figures::print_names();
        for look in 1..=LOOKS {
            let at = time * look / LOOKS;
            if self.over.wait(at.saturating_sub(start.elapsed())) {
                break;
            }
            if look * 3 > LOOKS && self.warming.swap(false, Ordering::Relaxed) {
                // A daemon that was killed a moment ago has its successor.
                self.home.read(&["daemon", "start"])?;
            }
            // While the daemon gets warm it may be missing at this moment.
            match Figures::of(&self.home) {
                Ok(figures) => {
                    series.add(look * 3 > LOOKS, figures);
                    if look.is_multiple_of(SHOWN) {
                        figures.print(start.elapsed());
                    }
                }
                Err(_) if self.warming.load(Ordering::Relaxed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(series)
    }

    fn print(&self) {
        let counts = lock(&self.counts);
        let [prompts, sessions, cut, agents, shims, daemons, expired, backups] =
            ["prompts", "sessions", "cut", "agents", "shims", "daemons", "expired", "backups"]
                .map(|what| counts.get(what).copied().unwrap_or(0));
        println!(
            "{prompts} prompts in {sessions} sessions, {cut} cut off; killed: {agents} agents, \
             {shims} shims, {daemons} times the daemon; {expired} sessions over a limit, {backups} \
             backups"
        );
    }
}
