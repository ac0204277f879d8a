//! `cargo xtask cross`: checks the macOS build, and runs the tests of the Windows build under Wine.
//! `docs/platforms.md` says what that shows.
//!
//! `crates/xtask/cross` installs a compiler for both, whose files are in a target directory of
//! their own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use crate::workspace::{self, cargo_command, read, succeed};
use crate::{Result, test};

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

/// The crate with all differences between systems: CI checks it, too.
const IN_CI: &str = "acpd-sys";

/// Cases of each property, unless `PROPTEST_CASES` is set: Linux tries all.
const CASES: &str = "32";

/// Seeds of the simulation, unless `ACPD_SIM_SEEDS` is set.
const SEEDS: &str = "100";

/// Rounds of the kill loop, unless `ACPD_KILL_ROUNDS` is set.
const ROUNDS: &str = "50";

/// For the workspace's crates only.
const DENY_WARNINGS: [&str; 3] = ["-Zwarnings", "--config", "build.warnings='deny'"];

/// A system other than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// Checks that it builds, with warnings denied.
    Macos,
    /// Builds it with warnings denied, and runs its tests under Wine.
    Windows,
}

impl System {
    fn target(self) -> &'static str {
        match self {
            System::Macos => "aarch64-apple-darwin",
            System::Windows => "x86_64-pc-windows-gnu",
        }
    }
}

fn script(name: &str) -> PathBuf {
    workspace::root().join("crates/xtask/cross").join(name)
}

/// Returns the compiler for both systems. Fails if it is not installed.
pub fn compiler() -> Result<PathBuf> {
    if !test::on_path("python3") {
        return Err("python3 is missing, which installs a compiler for it".into());
    }
    let script = script("cross.py");
    let dir = PathBuf::from(read(Command::new(&script).arg("--dir"))?.trim());
    if !dir.join("ready").exists() || !test::on_path("wine") {
        let script = script.display();
        return Err(format!("no compiler for it, or no Wine: run `{script} --install`").into());
    }
    Ok(dir.join("rustc"))
}

/// Checks or tests one of the systems.
pub fn run(system: System) -> Result {
    match system {
        System::Macos => macos(),
        System::Windows => windows(),
    }
}

fn cargo_for(system: System, command: &str) -> Result<Command> {
    let mut cargo = cargo_command(&[command, "--locked", "--target", system.target()]);
    // The standard library for the target exists as source only.
    cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
    cargo.env("RUSTC", compiler()?);
    cargo.env("CARGO_TARGET_DIR", workspace::bin_dir("cross")?);
    Ok(cargo)
}

/// Checks that crate for macOS, and builds its tests for Windows.
pub fn build_in_ci() -> Result {
    check_macos(&["-p", IN_CI])?;
    libraries_on_windows(&["-p", IN_CI, "--no-run"])
}

/// Runs them under Wine.
pub fn test_in_ci() -> Result {
    libraries_on_windows(&["-p", IN_CI])
}

/// Checks without linking: programs and libraries alike.
fn macos() -> Result {
    check_macos(&["--workspace", "--exclude", "xtask"])
}

fn check_macos(packages: &[&str]) -> Result {
    let mut check = cargo_for(System::Macos, "check")?;
    check.args(packages).arg("--all-features").args(DENY_WARNINGS);
    for tool in ["CC", "AR"] {
        check.env(format!("{tool}_aarch64_apple_darwin"), script("no-compiler"));
    }
    succeed(&mut check)
}

/// Runs all tests that can run under Wine, and some of the simulation. That checks the build, too.
fn windows() -> Result {
    let packages: Vec<&str> = RUN_ON_WINDOWS.iter().flat_map(|package| ["-p", package]).collect();
    libraries_on_windows(&packages)?;
    let mut simulation = wine()?;
    simulation.args(["-p", "acpd-test", "--features", "acpd-test/sim", "--test", "simulation"]);
    if env::var_os("ACPD_SIM_SEEDS").is_none() {
        simulation.env("ACPD_SIM_SEEDS", SEEDS);
    }
    succeed(&mut simulation)?;
    programs_on_windows()
}

fn libraries_on_windows(packages: &[&str]) -> Result {
    let mut test = wine()?;
    succeed(test.args(["--no-fail-fast", "--lib", "--tests"]).args(packages))
}

/// Tests the daemon, its shims, the agent `demo` and `acpctl` as programs: all are built before any
/// test of them runs.
fn programs_on_windows() -> Result {
    let mut programs = wine()?;
    programs.args(["-p", "acpd", "-p", "acpctl", "--features", "acpd/crash-points"]);
    if env::var_os("ACPD_KILL_ROUNDS").is_none() {
        programs.env("ACPD_KILL_ROUNDS", ROUNDS);
    }
    succeed(programs.args(["--no-fail-fast", "--test", "windows"]))
}

/// `cargo test` for Windows, run under Wine.
fn wine() -> Result<Command> {
    let mut test = cargo_for(System::Windows, "test")?;
    test.args(DENY_WARNINGS);
    let runner = format!("{} --run", script("cross.py").display());
    test.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner);
    // insta looks for snapshots with cargo, which does not run there.
    test.env("INSTA_WORKSPACE_ROOT", workspace::root());
    if env::var_os("PROPTEST_CASES").is_none() {
        test.env("PROPTEST_CASES", CASES);
    }
    Ok(test)
}
