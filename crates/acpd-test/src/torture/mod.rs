//! The kill loop (`cargo xtask torture`): real programs and processes, killed again and again.
//!
//! **Clients and agents.** Three scripted agents, a session each, and their clients: an editor
//! (this tool) behind the bridge `acpctl acp`, `acpctl run` with a prompt each round and `acpctl
//! attach` that watches it, a client with a token that resumes by the letter of the protocol, and a
//! plain observer of all three sessions that attaches again behind its last line.
//!
//! **A round.** All clients prompt, the agents stream numbered chunks, some ask for a permission or
//! leave processes behind, and the killer strikes once or twice: SIGKILL to the daemon (at any
//! moment, or at a named crash point), a shim, an agent or its children, the bridge, the commands;
//! or SIGTERM, a restart, a detaching stop. The moment is a number of seen lines, so a seed does
//! the same thing again as far as a scheduler lets it. Then everything has to come to rest.
//!
//! **Ledger.** Each agent records its output before it writes it, and its input before it acts on
//! it. Journal and views are compared with this truth.
//!
//! **The rules.**
//! - An agent gets each prompt at most once, in the order in which it was given; each turn is in
//!   the journal once and ends once; each prompt of a living client is answered once, with its
//!   turn's end.
//! - A turn whose agent was not struck has ended with `end_turn`, and the journal has exactly the
//!   chunks that the ledger has.
//! - A turn whose agent or shim was struck may be `interrupted`, and the journal then has a
//!   beginning of the ledger's chunks; a prompt that the agent had not got may be refused.
//!   `outcome_unknown` is right only if the daemon was struck as well, or the agent speaks version 2.
//! - The journal's numbers have no gaps, but for lines of other versions. A client that gets numbers has seen exactly the journal's
//!   lines, in order and once, but for prompts of its own; the editor and `run` exactly its chunks.
//! - An agent that was not struck is the same process as before.
//! - When an agent starts, no process of its earlier run is alive.
//! - After `acpctl daemon stop`, every 25 rounds, no process of the home is left, and no directory
//!   of a shim, spool or socket.
#![expect(clippy::print_stdout, reason = "a program for developers")]

mod check;
mod clients;
mod ledger;
mod lines;
mod plan;
mod round;
mod scene;
mod stage;
mod token;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::home::Result;
use crate::lock;
use plan::Plan;
use stage::Stage;

/// Rounds in one home; then everything is stopped, checked, and started again.
const SCENE: u64 = 25;
/// The hits at which the daemon dies in the matrix.
const HITS: [u32; 2] = [1, 3];

/// Options of the kill loop.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Number of rounds to run.
    #[arg(long, default_value_t = 300)]
    pub rounds: u64,
    /// The first round: to see one again that failed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Targets and times of strikes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Before the rounds, have the daemon die at every crash point in turn.
    #[arg(long)]
    pub matrix: bool,
    /// Homes at a time.
    #[arg(long, default_value_t = 4)]
    pub jobs: u32,
    /// Keep the homes, also of rounds that went well.
    #[arg(long)]
    pub keep: bool,
}

/// Plays the rounds with the programs in `bins`, which have crash points, and prints the results.
/// The error has the first round with a difference, and how to repeat it.
pub fn run(options: &Options, bins: &Path) -> Result {
    let points = points(bins)?;
    let (tally, failure) = (Mutex::default(), Mutex::default());
    let torture = Torture { options, bins, points, tally, failure };
    let begin = Instant::now();
    let result = torture.run();
    lock(&torture.tally).print(begin.elapsed());
    result
}

fn points(bins: &Path) -> Result<Vec<String>> {
    let output = std::process::Command::new(bins.join("acpd")).arg("crash-points").output()?;
    if !output.status.success() {
        return Err("`acpd crash-points` failed".into());
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

struct Torture<'a> {
    options: &'a Options,
    bins: &'a Path,
    points: Vec<String>,
    tally: Mutex<Tally>,
    failure: Mutex<Option<String>>,
}

impl Torture<'_> {
    fn run(&self) -> Result {
        let Options { seed, from, rounds, .. } = *self.options;
        if self.options.matrix {
            let points = self.points.iter().flat_map(|point| HITS.map(|hit| (point, hit)));
            let plans: Vec<_> = (0..)
                .zip(points)
                .map(|(n, (point, hit))| (n, Plan::at_point(seed, n, point, hit)))
                .collect();
            println!("{} rounds of the matrix", plans.len());
            self.all(&plans, "--matrix --rounds 0")?;
            let tally = lock(&self.tally);
            for point in self.points.iter().filter(|point| !tally.reached.contains(*point)) {
                println!("the point {point} was not reached");
            }
        }
        let plan = |n| (n, Plan::random(seed, n, &self.points));
        let plans: Vec<_> = (from..from + rounds).map(plan).collect();
        self.all(&plans, "--rounds 1")
    }

    /// Plays these rounds, several scenes at a time: a round mostly waits.
    fn all(&self, plans: &[(u64, Plan)], again: &str) -> Result {
        let scenes = Mutex::new(plans.chunks(SCENE as usize));
        let next = || lock(&scenes).next().filter(|_| lock(&self.failure).is_none());
        let work = || {
            while let Some(plans) = next() {
                if let Err(error) = self.scene(plans, again) {
                    lock(&self.failure).get_or_insert(error.to_string());
                }
            }
        };
        thread::scope(|scope| (0..self.options.jobs).for_each(|_| drop(scope.spawn(work))));
        lock(&self.failure).take().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn scene(&self, plans: &[(u64, Plan)], again: &str) -> Result {
        let mut last = plans.first().map_or(0, |(n, _)| *n);
        let mut stage =
            Stage::set(self.bins).map_err(|error| format!("before round {last}: {error}"))?;
        let mut counted = BTreeSet::new();
        let mut play = |stage: &mut Stage| -> Result {
            for (n, plan) in plans {
                last = *n;
                let played = round::play(stage, plan);
                lock(&self.tally).count(plan, stage, &mut counted);
                played.map_err(|error| format!("{error}\n\n  {}", describe(plan)))?;
            }
            stage.clear()
        };
        let result = play(&mut stage);
        lock(&self.tally).end_scene(&stage);
        if result.is_err() || self.options.keep {
            stage.scene.home.keep();
        }
        result.map_err(|error| {
            let Options { seed, .. } = self.options;
            let home = stage.scene.home.path("");
            format!(
                "round {last} of seed {seed}:\n  {error}\n  home: {}\n  again: cargo xtask torture \
                 --seed {seed} --from {last} {again}",
                home.display()
            )
            .into()
        })
    }
}

fn describe(plan: &Plan) -> String {
    let strikes = plan.strikes.iter().map(|(at, strike)| format!("{strike} at line {at}"));
    let prompts = plan.prompts.iter().map(|prompt| prompt.text.clone());
    let all: Vec<_> = strikes.chain(prompts).collect();
    all.join("\n  ")
}

#[derive(Debug, Default)]
struct Tally {
    rounds: u64,
    strikes: BTreeMap<&'static str, u64>,
    /// Number of deaths of a daemon at each point.
    points: BTreeMap<String, u64>,
    reached: BTreeSet<String>,
    /// Daemons and agents that replaced another one.
    daemons: u64,
    agents: u64,
}

impl Tally {
    /// Counts a round. `counted` are the scene's daemons whose death at a point was counted before.
    fn count(&mut self, plan: &Plan, stage: &Stage, counted: &mut BTreeSet<u32>) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(SCENE) {
            println!("{:>6} rounds", self.rounds);
        }
        for (_, strike) in &plan.strikes {
            *self.strikes.entry(strike.kind()).or_default() += 1;
        }
        for (pid, point) in stage.scene.armed() {
            let gone = stage.scene.ours(pid).is_none() && !stage.shot.contains(&pid);
            if gone && counted.insert(pid) {
                let name = point.split(':').next().unwrap_or_default().to_owned();
                self.reached.insert(name);
                *self.points.entry(point).or_default() += 1;
            }
        }
    }

    fn end_scene(&mut self, stage: &Stage) {
        self.daemons += stage.losses;
        let starts = stage.ledgers.iter().map(|ledger| ledger.starts.len() as u64);
        self.agents += starts.map(|starts| starts.saturating_sub(1)).sum::<u64>();
    }

    fn print(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        println!(
            "{} rounds in {seconds:.1} s ({:.0} ms each); {} restarts of the daemon, {} of agents",
            self.rounds,
            1000.0 * seconds / self.rounds.max(1) as f64,
            self.daemons,
            self.agents,
        );
        for (kind, count) in &self.strikes {
            println!("{count:>7} {kind}");
        }
        for (point, count) in &self.points {
            println!("{count:>7} died at {point}");
        }
    }
}
