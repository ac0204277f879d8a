//! `cargo xtask bench`: acpd beside a direct pipe with the same agent, in one run.
//!
//! The figures depend on the machine and on what else it does; what counts is how the two columns
//! compare. Nothing here fails because something was slow.

mod against;
pub mod agent;
mod hop;
mod journal;
mod process;
mod start;
mod stream;
mod table;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::Result;
use crate::home::Home;
use crate::peer::Peer;
use crate::workspace::{self, Profile, succeed};
use table::{Row, median, ms};

/// The command that [`agent::run`] hides behind.
pub const AGENT: &str = "bench-agent";

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Fewer and smaller runs: shows that it works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Compare with the programs in this folder, in alternating runs; fails if something is slower.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
}

/// Measures everything and prints the table.
pub fn run(options: &Options) -> Result {
    let quick = options.quick;
    let bins = workspace::build(Profile::Release)?;
    if cfg!(debug_assertions) {
        // The measuring end must be fast, too.
        workspace::cargo(&["build", "--release", "-p", "xtask"])?;
        let mut again = Command::new(bins.join("xtask"));
        again.arg("bench");
        if quick {
            again.arg("--quick");
        }
        if let Some(old) = &options.against {
            again.arg("--against").arg(old);
        }
        return succeed(&mut again);
    }
    if let Some(old) = &options.against {
        return against::run(&old.canonicalize()?, &bins, quick);
    }
    let mut bench = Bench::new(&bins, quick)?;
    bench.measure()?;
    table::print(&bench.rows);
    println!("direct: the same agent at the end of a pipe; medians of several runs");
    bench.stop()
}

/// This program. A build meanwhile puts another file into its place, and that is as good.
fn own_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(text.unwrap_or(path))
}

/// One agent that everything is measured with, and others that only start.
fn configure(home: &Home, host: &str) -> Result {
    use std::fmt::Write as _;
    let command = format!("[\"{}\", {AGENT:?}]", own_program()?.display());
    let mut text = format!("default_agent = \"bench\"\n[daemon]\nhost = {host:?}\n");
    let names = (0..process::SHIMS).map(|n| format!("bench{n}"));
    for name in names.chain(["bench".to_owned()]) {
        write!(
            text,
            "[agents.{name}]\ncommand = {command}\nidle_timeout = \"0\"\n\
             ready_after = \"1ms\"\nrestart_budget = 1000\n",
        )?;
    }
    home.configure(&text)
}

/// A home with a daemon, and what was measured in it so far.
struct Bench {
    home: Home,
    /// The same with agents that are children of the daemon.
    without: Home,
    quick: bool,
    rows: Vec<Row>,
}

impl Bench {
    fn new(bins: &Path, quick: bool) -> Result<Bench> {
        let (home, without) = (Home::new(bins)?, Home::new(bins)?);
        configure(&home, "shim")?;
        configure(&without, "direct")?;
        Ok(Bench { home, without, quick, rows: Vec::new() })
    }

    fn stop(self) -> Result {
        self.without.stop()?;
        self.home.stop()
    }

    fn measure(&mut self) -> Result {
        type Part = fn(&mut Bench) -> Result;
        let parts: [(&str, Part); 13] = [
            ("disk", Bench::disk),
            ("memory", process::memory),
            ("shims", process::shims),
            ("command line", start::command_line),
            ("latency", stream::latency),
            ("the hop through the shim", hop::latency),
            ("round trips", stream::round_trips),
            ("streams", stream::throughput),
            ("streams through the shim", hop::throughput),
            ("giant lines", stream::giants),
            ("journal", journal::replay),
            ("deaths", start::deaths),
            ("the death of the daemon", hop::daemon_killed),
        ];
        for (name, part) in parts {
            eprintln!("measuring: {name}");
            part(self)?;
        }
        Ok(())
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// How often: this often, or a tenth of it.
    fn times(&self, times: usize) -> usize {
        if self.quick { times.div_ceil(10) } else { times }
    }

    fn direct(&self) -> Result<Peer> {
        let mut command = self.home.command(&own_program()?);
        command.arg(AGENT);
        let mut peer = Peer::start(command)?;
        peer.initialize(&json!({}))?;
        Ok(peer)
    }

    /// The agent through the daemon, which is started if need be.
    fn client(&self) -> Result<Peer> {
        self.client_with(&json!({"agent": "bench"}))
    }

    /// The same for a client that takes notices and positions.
    fn watcher(&self) -> Result<Peer> {
        self.client_with(&json!({"agent": "bench", "notices": true, "seq": true}))
    }

    fn client_with(&self, acpd: &serde_json::Value) -> Result<Peer> {
        Bench::client_of(&self.home, acpd)
    }

    fn client_of(home: &Home, acpd: &serde_json::Value) -> Result<Peer> {
        home.read(&["daemon", "start"])?;
        let mut peer = Peer::connect(&home.socket(), None)?;
        peer.initialize(acpd)?;
        Ok(peer)
    }

    /// The agent through the daemon and the bridge.
    fn bridge(&self) -> Result<Peer> {
        let mut peer = Peer::start(self.home.acpctl(&["acp", "bench"]))?;
        peer.initialize(&json!({}))?;
        Ok(peer)
    }

    fn work(&self) -> PathBuf {
        self.home.path("work")
    }

    /// What the disk itself takes to make a page durable.
    fn disk(&mut self) -> Result {
        let mut file = File::create(self.home.path("fsync"))?;
        let mut times = Vec::new();
        for _ in 0..self.times(200) {
            file.write_all(&[0; 4096])?;
            let start = Instant::now();
            file.sync_data()?;
            times.push(ms(start.elapsed()));
        }
        let p50 = median(&mut times);
        self.row(Row::new("fdatasync of 4 KiB, p50", format!("{p50:.2} ms")));
        Ok(())
    }
}
