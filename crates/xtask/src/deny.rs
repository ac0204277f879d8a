//! `cargo xtask deny`: licences, sources and bans of dependencies, and known vulnerabilities if
//! their database is available.

use std::process::Stdio;

use crate::Result;
use crate::workspace::{self, cargo_command, succeed};

/// Checks `deny.toml`. A missing `cargo-deny` is an error in continuous integration only.
pub fn run() -> Result {
    if !workspace::has_cargo("deny") {
        let missing = "cargo-deny is not installed: `cargo install cargo-deny --locked`";
        let what = "licences, sources and vulnerabilities of dependencies";
        return workspace::skip(what, missing);
    }
    let mut checks = vec!["licenses", "sources", "bans"];
    let mut fetch = cargo_command(&["deny", "--locked", "fetch", "db"]);
    if fetch.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        checks.push("advisories");
    } else {
        eprintln!(
            "SKIPPED: vulnerabilities of dependencies: their database cannot be fetched here"
        );
    }
    let check = ["deny", "--locked", "check", "--hide-inclusion-graph"];
    succeed(&mut cargo_command(&[&check[..], &checks].concat()))
}
