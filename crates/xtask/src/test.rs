//! `cargo xtask test`: every check, in the order in which failures are cheap.

use std::io;
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::workspace::{self, cargo_command, succeed};
use crate::{Result, cross, deny, real, torture};

/// Seeds of the simulation in continuous integration, unless `ACPD_SIM_SEEDS` is set.
const CI_SEEDS: &str = "2000";

/// Runs everything; `fast` leaves out what is not needed in the middle of a change.
pub fn run(fast: bool) -> Result {
    let mut stages = Stages::default();
    stages.run("format", || workspace::cargo(&["fmt", "--all", "--check"]))?;
    stages.run("build", || {
        workspace::cargo(&["build", "--workspace", "--all-features", "--bins", "--locked"])
    })?;
    if !fast {
        stages.run("dependencies", deny::run)?;
        stages.run("clippy", || {
            let what = ["clippy", "--workspace", "--all-features", "--all-targets", "--locked"];
            workspace::cargo(&[&what[..], &["--", "-D", "warnings"]].concat())
        })?;
        stages.run("documentation", || {
            let mut doc = cargo_command(&["doc", "--workspace", "--all-features", "--no-deps"]);
            succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
        })?;
        // Linking each crate for them takes minutes, and only this one has some.
        stages.run("documentation tests", || {
            workspace::cargo(&["test", "--package", "acpd-api", "--doc", "--quiet"])
        })?;
    }
    stages.run("build of the tests", || {
        workspace::cargo(&["test", "--workspace", "--all-features", "--no-run", "--quiet"])
    })?;
    stages.print();
    if fast {
        eprintln!("not with --fast: clippy, documentation, real agents and clients");
    } else if let Err(missing) = real::needs() {
        workspace::skip("the tests with real agents and clients", missing)?;
    }
    if fast {
        eprintln!("SKIPPED with --fast: macOS and Windows, `cargo xtask cross`");
    } else if let Err(missing) = cross::compiler() {
        workspace::skip("macOS and Windows", missing)?;
    } else {
        stages.run("macOS and Windows, in part", cross::in_ci)?;
    }
    if fast {
        eprintln!("SKIPPED with --fast: the kill loop, `cargo xtask torture --matrix`");
    } else {
        stages.run("kill loop", torture::run_in_ci)?;
        stages.print();
    }
    tests(fast)
}

/// The tests themselves. The last line on stdout is the runner's summary.
fn tests(fast: bool) -> Result {
    let all = ["--workspace", "--all-features"];
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
    command.args(all);
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
