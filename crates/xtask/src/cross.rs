//! `cargo xtask cross`: the systems that this one is not, as far as they can be seen from here. The macOS build is checked, and
//! not run; the Windows build is run under Wine. `docs/platforms.md` says what that shows.
//!
//! A script that is shared by several projects fetches a compiler for both (`../shared/tools/cross.sh`). Their files are in a
//! target directory of their own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use crate::Result;
use crate::workspace::{self, succeed};

/// Libraries whose tests run there.
const RUN_ON_WINDOWS: [&str; 14] = [
    "acp-wire",
    "acpd-api",
    "acpd-policy",
    "acpd-view",
    "acpd-core",
    "acpd-store",
    "acpd-sys",
    "acpd-shim",
    "acpd-services",
    "acpd-client",
    "acpd-demo",
    "acpd-tui",
    "acpd-mcp",
    "acpd-web",
];

/// Those of them that talk with the system, whose tests run there always.
const ALWAYS_RUN_ON_WINDOWS: [&str; 5] =
    ["acpd-sys", "acpd-shim", "acpd-services", "acpd-store", "acpd-client"];

/// Cases of each property there, unless `PROPTEST_CASES` says otherwise: Linux tries all.
const CASES: &str = "32";

/// Of the programs, beside those that each has by default.
const FEATURES: &str = "acpd/crash-points";

const SIMULATION: &str = "acpd-test/sim";
/// Seeds of it there, unless `ACPD_SIM_SEEDS` says otherwise.
const SEEDS: &str = "100";

/// Of the kill loop there, unless `ACPD_KILL_ROUNDS` says otherwise.
const ROUNDS: &str = "50";
/// Of the kill loop there, in a part of the tests.
const FEW_ROUNDS: &str = "15";

/// Of our own crates.
const DENY_WARNINGS: [&str; 3] = ["-Zwarnings", "--config", "build.warnings='deny'"];

/// A system that this one is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// Checks that it builds, with warnings denied.
    Macos,
    /// Builds it with warnings denied, and runs its tests under Wine.
    Windows,
}

/// What the developer's machine lacks for this, in words; `None` if it lacks nothing.
pub fn missing() -> Option<String> {
    let Some(script) = script() else {
        return Some("there is no `../shared/tools/cross.sh`".to_owned());
    };
    let cache = env::var_os("CROSS_DIR").map(PathBuf::from).or_else(|| {
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
        Some(cache?.join("acpd-cross"))
    });
    let is_ready = cache.is_some_and(|cache| cache.join("ready").exists());
    (!is_ready).then(|| format!("no compiler for it: run `{} setup`", script.display()))
}

fn script() -> Option<PathBuf> {
    Some(workspace::shared()?.join("tools/cross.sh")).filter(|script| script.is_file())
}

/// Checks or tests one of them.
///
/// # Errors
/// When something is missing, or is not right.
pub fn run(system: System) -> Result {
    if let Some(missing) = missing() {
        return Err(missing.into());
    }
    match system {
        System::Macos => macos(),
        System::Windows => windows(),
    }
}

fn cross(args: &[&str]) -> Result<Command> {
    let script = script().ok_or("there is no script for it")?;
    let mut command = Command::new(script);
    command.args(args).current_dir(workspace::root());
    let target = workspace::metadata(&["--no-deps"])?["target_directory"]
        .as_str()
        .map(|target| PathBuf::from(target).join("cross"));
    command.env("CARGO_TARGET_DIR", target.ok_or("cargo tells no target directory")?);
    Ok(command)
}

/// Nothing is linked, so programs and libraries are checked alike.
fn macos() -> Result {
    let what =
        ["macos", "check", "--workspace", "--exclude", "xtask", "--all-features", "--locked"];
    succeed(cross(&what)?.args(DENY_WARNINGS))
}

/// Runs all tests that can run under Wine, and some of the simulation. That checks the build, too.
fn windows() -> Result {
    libraries_on_windows(&RUN_ON_WINDOWS)?;
    let mut simulation =
        wine(&["-p", "acpd-test", "--features", SIMULATION, "--test", "simulation"])?;
    if env::var_os("ACPD_SIM_SEEDS").is_none() {
        simulation.env("ACPD_SIM_SEEDS", SEEDS);
    }
    succeed(simulation.args(DENY_WARNINGS))?;
    programs_on_windows(ROUNDS)
}

/// Tests what depends on the system under Wine: a part of [`run`] that takes a third of the time.
///
/// # Errors
/// When something is not right.
pub fn windows_in_part() -> Result {
    libraries_on_windows(&ALWAYS_RUN_ON_WINDOWS)?;
    programs_on_windows(FEW_ROUNDS)
}

fn libraries_on_windows(packages: &[&str]) -> Result {
    let mut test = wine(&["--no-fail-fast", "--lib", "--tests"])?;
    for package in packages {
        test.args(["-p", package]);
    }
    succeed(test.args(DENY_WARNINGS))
}

/// Tests the daemon, its shims, the agent `demo` and `acpctl` as programs: all are built before any
/// test of them runs.
fn programs_on_windows(rounds: &str) -> Result {
    let mut programs = wine(&["-p", "acpd", "-p", "acpctl", "--features", FEATURES])?;
    if env::var_os("ACPD_KILL_ROUNDS").is_none() {
        programs.env("ACPD_KILL_ROUNDS", rounds);
    }
    programs.args(["--no-fail-fast", "--test", "windows"]);
    succeed(programs.args(DENY_WARNINGS))
}

/// Tests that run under Wine.
fn wine(what: &[&str]) -> Result<Command> {
    let script = script().ok_or("there is no script for it")?;
    let mut test = cross(&["windows", "test", "--locked"])?;
    test.args(what);
    test.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", format!("{} run", script.display()));
    // Snapshots are looked for with cargo, which does not run there.
    test.env("INSTA_WORKSPACE_ROOT", workspace::root());
    if env::var_os("PROPTEST_CASES").is_none() {
        test.env("PROPTEST_CASES", CASES);
    }
    Ok(test)
}
