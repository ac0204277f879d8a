//! `cargo xtask torture` and `cargo xtask soak`: builds the programs for the kill loop and the soak
//! of `acpd-test`.

use std::path::PathBuf;

use clap::{Args, Parser as _};

use crate::Result;
use crate::workspace::{self, bin_dir};

const PROFILE: &str = "torture";

/// Options, and the programs to run.
#[derive(Debug, Args)]
pub struct Run<T: Args> {
    #[command(flatten)]
    pub options: T,
    /// Use the programs as they were built last.
    #[arg(long)]
    pub no_build: bool,
}

/// Builds the programs with crash points, and returns their folder.
pub fn programs(no_build: bool) -> Result<PathBuf> {
    if !no_build {
        let packages = ["-p", "acpd", "-p", "acpctl", "-p", "acpd-test"];
        let how = ["build", "--bins", "--profile", PROFILE, "--features", "acpd/crash-points"];
        workspace::cargo(&[&how[..], &packages].concat())?;
    }
    bin_dir(PROFILE)
}

/// Runs the same part of the kill loop each time, with the programs of a debug build, which has all
/// features.
pub fn run_in_ci() -> Result {
    let options = ["torture", "--matrix", "--rounds", "200"];
    acpd_test::torture::run(&acpd_test::torture::Options::parse_from(options), &bin_dir("debug")?)
}
