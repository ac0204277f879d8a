//! `cargo xtask coverage`: which lines the tests run, crate by crate.
//!
//! The real programs count, too: whatever the tests start writes down what it has run when it ends, and what is killed does
//! not. A shim and an agent are started without the variable that says where to, so that is linked into every program:
//!
//! ```text
//!  linker ─▶ one object more, with the place in it ─▶ programs ─▶ profiles, few for each program ─▶ report
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Result;
use crate::workspace::{self, cargo_command, has_cargo, read, root, succeed};

/// Tests whose programs are built elsewhere, or that are about something else than acpd's own lines; and one that would see
/// the variable that a measured agent sets for itself.
const LEFT_OUT: &str = "binary(packages) + binary(page) + binary(/^real_/) \
                        + test(=an_agent_sees_its_own_environment_alone)";
/// Profiles of a program: each is kept by one of those that end at the same time.
const POOL: &str = "%8m";

/// Runs the tests, of these packages or of all, and prints what they have covered.
///
/// # Errors
/// When something is missing, or the report cannot be made. A test that fails is told, and counts as far as it came.
pub fn run(packages: &[String]) -> Result {
    for (command, install) in [("llvm-cov", "cargo-llvm-cov"), ("nextest", "cargo-nextest")] {
        if !has_cargo(command) {
            return Err(
                format!("`{install}` is missing: `cargo install {install} --locked`").into()
            );
        }
    }
    let target = root().join("target/coverage");
    fs::create_dir_all(&target)?;
    let linker = linker(&target)?;
    let tools = tools()?;
    let command = |args: &[&str]| {
        let mut command = cargo_command(args);
        command.env("CARGO_TARGET_DIR", &target).env("CARGO_INCREMENTAL", "0");
        command.env("LLVM_PROFILE_FILE", profile(&target)).envs(tools.iter().cloned());
        // So that it looks there.
        for name in ["CARGO_LLVM_COV", "CARGO_LLVM_COV_SHOW_ENV"] {
            command.env(name, "1");
        }
        command.env("CARGO_LLVM_COV_TARGET_DIR", &target);
        command
    };
    for entry in fs::read_dir(&target)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "profraw") {
            fs::remove_file(path)?;
        }
    }
    let mut tests = command(&["nextest", "run", "--all-features", "--locked"]);
    if packages.is_empty() {
        tests.arg("--workspace");
    }
    for package in packages {
        tests.args(["--package", package]);
    }
    tests.args(["--no-fail-fast", "-E", &format!("not ({LEFT_OUT})")]);
    let flags = format!("-Cinstrument-coverage --cfg=coverage -Clinker={}", linker.display());
    if let Err(failed) = succeed(tests.env("RUSTFLAGS", flags)) {
        eprintln!("some tests failed, and what they did not come to does not count: {failed}");
    }
    let report = read(&mut command(&["llvm-cov", "report", "--json", "--summary-only"]))?;
    print(&serde_json::from_str(&report)?)
}

/// Where programs write what they have run, in the names that the report looks for.
fn profile(target: &Path) -> PathBuf {
    target.join(format!("acpd-{POOL}.profraw"))
}

/// A linker that puts the name of the profiles into each program, before those that the compiler puts there.
fn linker(target: &Path) -> Result<PathBuf> {
    let (source, object) = (target.join("profile.s"), target.join("profile.o"));
    let place = profile(target);
    let place = place.to_str().ok_or("the path of the workspace is not UTF-8")?;
    fs::write(
        &source,
        format!(
            ".section .rodata.__llvm_profile_filename,\"aG\",@progbits,__llvm_profile_filename,comdat\n\
             .globl __llvm_profile_filename\n\
             .hidden __llvm_profile_filename\n\
             __llvm_profile_filename: .asciz {place:?}\n\
             .section .note.GNU-stack,\"\",@progbits\n"
        ),
    )?;
    succeed(Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object))?;
    let linker = target.join("linker");
    fs::write(&linker, format!("#!/bin/sh\nexec cc '{}' \"$@\"\n", object.display()))?;
    fs::set_permissions(&linker, fs::Permissions::from_mode(0o755))?;
    Ok(linker)
}

/// The tools that read profiles, of the compiler's own LLVM: those of rustup, else the system's.
fn tools() -> Result<Vec<(&'static str, PathBuf)>> {
    let sysroot = PathBuf::from(read(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let rustup = sysroot.join("lib/rustlib").join(workspace::host()?).join("bin");
    let version = read(Command::new("rustc").arg("-vV"))?;
    let major = version.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let major = major.and_then(|version| version.split('.').next()).unwrap_or_default();
    let system = PathBuf::from(format!("/usr/lib/llvm-{major}/bin"));
    let found = [rustup, system].into_iter().find(|dir| dir.join("llvm-profdata").is_file());
    let dir = found.ok_or_else(|| {
        format!(
            "llvm-cov and llvm-profdata {major} are missing: `rustup component add llvm-tools`, or Debian's `llvm-{major}`"
        )
    })?;
    let tool = |name: &'static str, file| (name, dir.join(file));
    Ok(vec![tool("LLVM_COV", "llvm-cov"), tool("LLVM_PROFDATA", "llvm-profdata")])
}

/// Prints the lines of each crate.
fn print(report: &Value) -> Result {
    let files = report["data"][0]["files"].as_array().ok_or("the report has no files")?;
    let mut crates: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for file in files {
        let path = file["filename"].as_str().unwrap_or_default();
        let Some((name, _)) =
            path.rsplit_once("/crates/").and_then(|(_, path)| path.split_once("/src/"))
        else {
            continue;
        };
        let lines = &file["summary"]["lines"];
        for name in [name, "all"] {
            let sum = crates.entry(name).or_default();
            sum[0] += lines["covered"].as_u64().unwrap_or_default();
            sum[1] += lines["count"].as_u64().unwrap_or_default();
        }
    }
    println!("{:<16} {:>8} {:>8} {:>7}", "crate", "lines", "covered", "");
    for (name, [covered, all]) in crates {
        let percent = 100.0 * covered as f64 / all.max(1) as f64;
        println!("{name:<16} {all:>8} {covered:>8} {percent:>6.1}%");
    }
    Ok(())
}
