//! `cargo xtask bench`: figures of acpd, next to the agent at the end of a pipe or to an older
//! build.
//!
//! The figures depend on the machine and its load; only the comparison within one run counts. Each
//! round measures both sides once, so that no side has the better half of an hour. Without
//! `--against` no figure fails. With it the new build may be worse by 3 %, or by the spread of old
//! against old if that is larger.

pub mod agent;
mod figures;
mod instructions;
mod scale;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::figures::{FIGURES, Figure};
use crate::home::Home;
use crate::workspace::{self, Profile, succeed};
use crate::{Result, test};
use acpd_test::peer::Peer;

pub const AGENT: &str = "bench-agent";

const ROUNDS: usize = 7;
/// Share by which a figure may be worse.
const TOLERANCE: f64 = 0.03;

/// Options of the bench.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Fewer and smaller runs: shows that it works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Compare with the programs in this folder, in alternating runs; fails if something is slower.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Measure only the figures whose names contain this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Measure instead how figures grow with sessions, events, clients and agents.
    #[arg(long, conflicts_with = "against")]
    scale: bool,
    /// With `--scale`: journals whose lines are compressed.
    #[arg(long, requires = "scale")]
    packed: bool,
}

/// Measures everything and prints the table. Fails if a figure cannot be measured, or is worse than
/// that of the compared programs.
pub fn run(options: &Options) -> Result {
    let bins = workspace::build(Profile::Release)?;
    if cfg!(debug_assertions) {
        // The measuring end must be fast, too.
        workspace::cargo(&["build", "--release", "-p", "xtask"])?;
        let mut again = Command::new(bins.join("xtask"));
        again.args(std::env::args_os().skip(1));
        return succeed(&mut again);
    }
    match &options.against {
        Some(old) => against(&old.canonicalize()?, &bins, options),
        None if options.scale => scale::run(&bins, options),
        None => next_to_pipe(&bins, options),
    }
}

fn next_to_pipe(bins: &Path, options: &Options) -> Result {
    let bench = Bench::new(bins, options.quick)?;
    let mut table = vec![["what", "acpd", "pipe", "acpd/pipe"].map(str::to_owned)];
    for figure in FIGURES.iter().filter(|figure| figure.name.contains(&options.only)) {
        eprintln!("measuring: {}", figure.name);
        let (mut measured, mut base) = (Vec::new(), Vec::new());
        for _ in 0..bench.times(ROUNDS) {
            measured.push((figure.measure)(&bench)?);
            if let Some(pipe) = figure.pipe {
                base.push(pipe(&bench)?);
            }
        }
        let value = median(&mut measured);
        let mut row = [figure.name.to_owned(), figure.shown(value), String::new(), String::new()];
        if !base.is_empty() {
            let base = median(&mut base);
            (row[2], row[3]) = (figure.shown(base), format!("{:.3}", value / base));
        }
        table.push(row);
    }
    bench.home.stop()?;
    print_aligned(&table);
    Ok(())
}

fn against(old: &Path, new: &Path, options: &Options) -> Result {
    // Each side has copies: processes of one file share its pages and count a part of them each,
    // and the way in which a file was written decides how fast it is mapped.
    let copies = [copied(old)?, copied(new)?, copied(old)?];
    let bench = |side: usize| Bench::new(copies[side].path(), options.quick);
    let sides = [bench(0)?, bench(1)?, bench(2)?];
    let head = ["what", "old", "new", "new/old", "old/old", ""].map(str::to_owned);
    let mut comparison = Comparison { table: vec![head], worse: Vec::new() };
    for figure in FIGURES.iter().filter(|figure| figure.name.contains(&options.only)) {
        eprintln!("measuring: {}", figure.name);
        let mut values = [const { Vec::new() }; 3];
        for round in 0..sides[0].times(ROUNDS).max(2) {
            // No side is always the first after a pause.
            for turn in 0..sides.len() {
                let side = (round + turn) % sides.len();
                values[side].push((figure.measure)(&sides[side])?);
            }
        }
        comparison.add(figure, values);
    }
    for side in sides {
        side.home.stop()?;
    }
    let figure = figures::less("instructions per line, daemon", "", |_| Ok(0.0));
    match (figure.name.contains(&options.only), test::on_path("valgrind")) {
        (true, true) => {
            eprintln!("measuring: instructions per line");
            let count =
                |bins| Ok::<_, Box<dyn std::error::Error>>(vec![instructions::per_line(bins)?]);
            comparison.add(&figure, [count(old)?, count(new)?, count(old)?]);
        }
        (true, false) => eprintln!("SKIPPED: instructions per line: valgrind is not installed"),
        (false, _) => {}
    }
    print_aligned(&comparison.table);
    let worse = comparison.worse;
    if worse.is_empty() { Ok(()) } else { Err(format!("worse: {}", worse.join(", ")).into()) }
}

fn copied(programs: &Path) -> Result<TempDir> {
    let copy = tempfile::tempdir()?;
    for program in fs::read_dir(programs)?.collect::<std::io::Result<Vec<_>>>()? {
        if program.file_type()?.is_file() {
            fs::copy(program.path(), copy.path().join(program.file_name()))?;
        }
    }
    Ok(copy)
}

struct Comparison {
    table: Vec<[String; 6]>,
    worse: Vec<&'static str>,
}

impl Comparison {
    /// Adds the values of the old build, of the new one, and of the old one again.
    fn add(&mut self, figure: &Figure, values: [Vec<f64>; 3]) {
        let [old, new, again] = values.map(|mut values| median(&mut values));
        let mean = f64::midpoint(old, again);
        let (ratio, spread) = (new / mean, again / old);
        let loss = if figure.more_is_better { 1.0 - ratio } else { ratio - 1.0 };
        let is_worse = loss > TOLERANCE.max((spread - 1.0).abs());
        if is_worse {
            self.worse.push(figure.name);
        }
        let verdict = if is_worse { "WORSE" } else { "ok" };
        let (ratio, spread) = (format!("{ratio:.3}"), format!("{spread:.3}"));
        let (mean, new) = (figure.shown(mean), figure.shown(new));
        self.table.push([figure.name.into(), mean, new, ratio, spread, verdict.into()]);
    }
}

/// This program. A build meanwhile replaces it, which does not matter.
fn own_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(text.unwrap_or(path))
}

fn home(bins: &Path) -> Result<Home> {
    let home = Home::new(bins)?;
    home.configure(&format!(
        "default_agent = \"bench\"\n[agents.bench]\ncommand = [\"{}\", {AGENT:?}]\n\
         idle_timeout = \"0\"\nready_after = \"1ms\"\nrestart_budget = 1000\n",
        own_program()?.display()
    ))?;
    Ok(home)
}

/// The agent through a daemon, which is started if needed.
fn client_of(home: &Home, acpd: &Value) -> Result<Peer> {
    home.read(&["daemon", "start"])?;
    let mut peer = Peer::connect(&home.socket(), None)?;
    peer.initialize(acpd)?;
    Ok(peer)
}

struct Bench {
    home: Home,
    bins: PathBuf,
    quick: bool,
}

impl Bench {
    fn new(bins: &Path, quick: bool) -> Result<Bench> {
        Ok(Bench { home: home(bins)?, bins: bins.to_owned(), quick })
    }

    /// This number, or a tenth of it.
    fn times(&self, times: usize) -> usize {
        if self.quick { times.div_ceil(10) } else { times }
    }

    fn pipe(&self) -> Result<Peer> {
        let mut command = self.home.command(&own_program()?);
        command.arg(AGENT);
        let mut peer = Peer::start(command)?;
        peer.initialize(&json!({}))?;
        Ok(peer)
    }

    fn client(&self) -> Result<Peer> {
        client_of(&self.home, &json!({"agent": "bench"}))
    }

    fn bridge(&self) -> Result<Peer> {
        let mut peer = Peer::start(self.home.acpctl(&["acp", "bench"]))?;
        peer.initialize(&json!({}))?;
        Ok(peer)
    }

    fn work(&self) -> PathBuf {
        self.home.path("work")
    }
}

/// Rows of the same length.
fn print_aligned(table: &[impl AsRef<[String]>]) {
    let rows: Vec<&[String]> = table.iter().map(AsRef::as_ref).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, |row| row.len())).map(width).collect();
    for row in rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
