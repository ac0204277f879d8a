//! `cargo xtask sanitize`: shims, what starts and ends processes, and what reads lines, under AddressSanitizer: it ends a
//! program that uses memory after it was freed or beyond its end, and one that ends with memory that nobody knows any more.
//!
//! The tests of shims are the shims that they start, which are watched as well: with an agent, without a daemon, killed, taken
//! over. The compiler is the one that builds acpd; the sanitizer is part of it, and only its switch is not stable. There is
//! no use for ThreadSanitizer: a shim is one thread.

use crate::Result;
use crate::workspace::{self, cargo_command, host, succeed};

/// The first has all `unsafe` of acpd, the others what stands on it and on libraries that have some.
const CRATES: [&str; 3] = ["acpd-sys", "acpd-shim", "acp-wire"];
/// Counts the memory of a shim, of which the sanitizer takes a multiple.
const TOO_BIG: &str = "test(a_flood_while_nobody_is_there_is_held_back)";
/// Inputs of the fuzzer of the link: everything is slower.
const RUNS: &str = "20000";

/// Runs the tests.
///
/// # Errors
/// When something is found. What is missing is an error in continuous integration, and told elsewhere.
pub fn run() -> Result {
    let host = host()?;
    let missing = match () {
        () if host != "x86_64-unknown-linux-gnu" => Some(format!("it is not tried on {host}")),
        () if !workspace::has_cargo("nextest") => Some("cargo-nextest is not installed".to_owned()),
        () => None,
    };
    if let Some(missing) = missing {
        return workspace::skip("AddressSanitizer", missing);
    }
    let mut tests = cargo_command(&["nextest", "run", "--locked", "--no-fail-fast"]);
    // With a target, what runs while it is built is as ever.
    tests.args(["--target", &host, "--target-dir", "target/sanitize"]);
    for name in CRATES {
        tests.args(["--package", name]);
    }
    tests.args(["-E", &format!("not {TOO_BIG}")]).env("ACPD_FUZZ_RUNS", RUNS);
    // The runner's summary of all tests is the only one on stdout.
    tests.stdout(std::io::stderr());
    succeed(tests.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address"))
}
