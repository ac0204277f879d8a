//! `cargo xtask fuzz`: the fuzzers of the tests, for longer. `acpd_test::fuzz` has their common
//! part.

use clap::{Args, ValueEnum};

use crate::Result;
use crate::workspace::{cargo_command, succeed};

/// Optimized, with every check of a debug build.
const PROFILE: &str = "fuzz";

/// Fuzz targets, their inputs, and their corpora.
#[derive(Debug, Args)]
pub struct Options {
    /// One of them [default: all, one after the other].
    target: Option<Target>,
    /// Executions of each: lines, frames, files.
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// Minutes of each, in place of a number of executions.
    #[arg(long)]
    minutes: Option<u64>,
    /// The seed of the first input; a failure tells its own.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    /// Lines of an agent to the hub.
    AgentLines,
    /// Lines of clients to the hub, one of them under an agent.
    ClientLines,
    /// Bytes on the link between a shim and its daemon.
    ShimLink,
    /// Text of configuration files.
    Config,
    /// Command lines before the rules of the policy.
    CommandLines,
    /// Lines with values that no reader takes, and bytes that are no lines, before those who show them.
    BrokenMembers,
}

impl Target {
    /// Package, place in it, and name of the test.
    fn test(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Target::AgentLines => ("acpd-core", "--test=hub", "fuzz::agent_lines"),
            Target::ClientLines => ("acpd-core", "--test=hub", "fuzz::client_lines"),
            Target::ShimLink => ("acpd-shim", "--lib", "input::tests::shim_link"),
            Target::Config => ("acpd", "--test=config_fuzz", "config"),
            Target::CommandLines => ("acpd-policy", "--test=shell", "command_lines"),
            Target::BrokenMembers => ("acpd-view", "--test=broken_members", "broken_members"),
        }
    }
}

/// Runs the chosen fuzzers.
pub fn run(options: &Options) -> Result {
    let targets = options.target.as_ref().map_or(Target::value_variants(), std::slice::from_ref);
    for target in targets {
        let (package, place, name) = target.test();
        let mut command = cargo_command(&["test", "--profile", PROFILE, "--package", package]);
        command.args([place, "--", "--exact", "--nocapture", name]);
        command.env("ACPD_FUZZ_RUNS", options.runs.to_string());
        command.env("ACPD_FUZZ_SEED", options.seed.to_string());
        if let Some(minutes) = options.minutes {
            command.env("ACPD_FUZZ_MINUTES", minutes.to_string());
        }
        succeed(&mut command)?;
    }
    Ok(())
}
