//! `cargo xtask miri`: lines of agents and frames of shims are taken apart in Miri, an interpreter that stops at whatever the
//! language leaves undefined, also in the libraries that are used for it.
//!
//! It needs a nightly toolchain with `miri` and `rust-src`, and takes hundreds of times as long as the machine does. So each
//! property has a few inputs, and what is long on purpose is left out there.

use std::process::Command;

use crate::Result;
use crate::workspace::{read, root, succeed};

/// Inputs of each property.
const FEW: &str = "2";
/// Packages, and of each the programs of tests in which bytes of others are taken apart.
const TESTS: [(&str, &[&str]); 2] = [
    ("acp-wire", &["envelope", "frame", "splice", "tidy"]),
    ("acpd-shim", &["frames", "releases"]),
];

/// Runs them. Without Miri that is told, and nothing else happens.
///
/// # Errors
/// When something is found.
pub fn run() -> Result {
    if let Err(missing) = read(&mut nightly(&["miri", "--version"])) {
        eprintln!(
            "SKIPPED: Miri: {missing}; `rustup component add --toolchain nightly miri rust-src`"
        );
        return Ok(());
    }
    for (package, programs) in TESTS {
        let mut tests = nightly(&["miri", "test", "--locked", "--package", package]);
        for program in programs {
            tests.args(["--test", program]);
        }
        tests.args(["--target-dir", "target/miri"]).env("PROPTEST_CASES", FEW);
        // Properties keep what failed in files.
        tests.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        succeed(&mut tests)?;
    }
    Ok(())
}

/// A command of the nightly toolchain: rustup's `cargo` finds it, once nothing names the one that runs us.
fn nightly(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(args).current_dir(root());
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
