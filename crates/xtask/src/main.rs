//! Developer commands; run them as `cargo xtask COMMAND`.
#![expect(clippy::print_stderr, reason = "a program for developers")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{Result, bench, cross, demo, deny, dist, fuzz, install, real, test, torture, vendor};

/// Developer commands of acpd.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what acpd is for, in a throw-away home, in half a minute.
    Demo,
    /// Run every check and every test.
    Test {
        /// Only formatting, build and the tests that need no real agent.
        #[arg(long)]
        fast: bool,
    },
    /// Run real agents under acpd, without an account [default: zedcodex copilot].
    Real {
        /// zedcodex, copilot, claude, opencode.
        agents: Vec<String>,
    },
    /// Measure acpd next to its agent at the end of a pipe, or to an older build.
    Bench(bench::Options),
    /// The agent that `bench` measures with.
    #[command(hide = true, name = bench::AGENT)]
    BenchAgent,
    /// Kill everything, again and again, and compare what is left with what should be.
    Torture(torture::Run<acpd_test::torture::Options>),
    /// Let agents and clients loose for long, and see whether anything grows.
    Soak(torture::Run<acpd_test::soak::Options>),
    /// Cut connections to another machine over a real ssh, and look for lost or doubled lines.
    #[cfg(target_os = "linux")]
    Hosts(torture::Run<xtask::hosts::Options>),
    /// Run the fuzzers of the tests for longer.
    Fuzz(fuzz::Options),
    /// Look at another system from here: check the macOS build, run the Windows build under Wine.
    Cross {
        /// The system to look at.
        system: cross::System,
    },
    /// Check licences, sources and known vulnerabilities of dependencies.
    Deny,
    /// Install acpd and acpctl with `cargo install`.
    Install,
    /// Fetch the libraries of the page from npm.
    Vendor,
    /// Make the files of a release in `target/dist/release`: archive, packages, sums, bill of materials.
    Dist(dist::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result {
    match command {
        Command::Demo => demo::run(),
        Command::Test { fast } => test::run(fast),
        Command::Real { agents } => real::run(&agents),
        Command::Bench(options) => bench::run(&options),
        Command::BenchAgent => bench::agent::run(),
        Command::Torture(torture::Run { options, no_build }) => {
            acpd_test::torture::run(&options, &torture::programs(no_build)?)
        }
        Command::Soak(torture::Run { options, no_build }) => {
            acpd_test::soak::run(&options, &torture::programs(no_build)?)
        }
        #[cfg(target_os = "linux")]
        Command::Hosts(torture::Run { options, no_build }) => {
            xtask::hosts::run(&options, &torture::programs(no_build)?)
        }
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Cross { system } => cross::run(system),
        Command::Deny => deny::run(),
        Command::Install => install::run(),
        Command::Vendor => vendor::run(),
        Command::Dist(options) => dist::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }
}
