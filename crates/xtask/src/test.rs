//! `cargo xtask test`: every check, in the order in which failures are cheap.

use std::io;
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::workspace::{self, cargo_command, succeed};
use crate::{Result, cross, deny, real, torture};

/// Seeds of the simulation in continuous integration, unless `ACPD_SIM_SEEDS` is set.
const CI_SEEDS: &str = "1000";

/// Runs everything; `fast` leaves out what is not needed in the middle of a change.
pub fn run(fast: bool) -> Result {
    let mut stages = Stages::default();
    stages.run("format", || workspace::cargo(&["fmt", "--all", "--check"]))?;
    // Programs by themselves have dependencies with other features: all would be compiled twice.
    let build = ["test", "--workspace", "--all-features", "--no-run", "--locked"];
    stages.run("build", || workspace::cargo(&build))?;
    if fast {
        eprintln!("SKIPPED with --fast: clippy, documentation, other systems, real agents, kills");
    } else {
        checks(&mut stages)?;
    }
    stages.print();
    tests(fast)
}

fn checks(stages: &mut Stages) -> Result {
    if let Err(missing) = real::needs() {
        workspace::skip("the tests with real agents and clients", missing)?;
    }
    let cross = cross::compiler();
    if let Err(missing) = &cross {
        workspace::skip("macOS and Windows", missing)?;
    }
    stages.run("dependencies", deny::run)?;
    stages.run("clippy, other systems", || clippy(cross.is_ok()))?;
    let mut doc = cargo_command(&["doc", "--workspace", "--all-features", "--no-deps"]);
    stages.run("documentation", || succeed(doc.env("RUSTDOCFLAGS", "-D warnings")))?;
    if cross.is_ok() {
        stages.run("tests under Wine", cross::test_in_ci)?;
    }
    stages.run("kill loop", torture::run_in_ci)
}

/// Runs clippy and the builds for other systems at once: each often waits for a single crate.
fn clippy(is_cross: bool) -> Result {
    thread::scope(|scope| {
        let build = || cross::build_in_ci().map_err(|error| error.to_string());
        let cross = is_cross.then(|| scope.spawn(build));
        let what = "clippy --workspace --all-features --all-targets --locked -- -D warnings";
        workspace::cargo(&what.split(' ').collect::<Vec<_>>())?;
        Ok(cross.map_or(Ok(()), |cross| cross.join().expect("no panic"))?)
    })
}

/// The tests themselves. The last line on stdout is the runner's summary.
fn tests(fast: bool) -> Result {
    let mut command = if workspace::has_cargo("nextest") {
        let mut command = cargo_command(&["nextest", "run", "--no-fail-fast"]);
        // Failures are listed as they occur: the summary stays the last line.
        command.args(["--final-status-level", "fail"]);
        if fast {
            command.args(["-E", "not binary(/^(real_|page$)/)"]);
        }
        // The runner writes to stderr. In one stream nothing can come after its summary.
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        command.stderr(Stdio::from(stdout));
        command
    } else {
        eprintln!("cargo-nextest is not installed; `cargo test` does it, more slowly");
        let mut command = cargo_command(&["test", "--no-fail-fast", "--bins", "--lib", "--tests"]);
        if fast {
            command.env(real::SKIP, "1");
        }
        command
    };
    command.args(["--workspace", "--all-features"]);
    if workspace::in_ci() && std::env::var_os("ACPD_SIM_SEEDS").is_none() {
        command.env("ACPD_SIM_SEEDS", CI_SEEDS);
    }
    succeed(&mut command)
}

pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[derive(Default)]
struct Stages(Vec<(&'static str, Duration)>);

impl Stages {
    fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result) -> Result {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = stage();
        self.0.push((name, start.elapsed()));
        result
    }

    fn print(&self) {
        eprintln!("\n{:<28} minutes", "stage");
        for (name, time) in &self.0 {
            eprintln!("{name:<28} {:>7.1}", time.as_secs_f64() / 60.0);
        }
        eprintln!();
    }
}
