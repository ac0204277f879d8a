//! The daemon, `acpctl` and the scripted agent as a user has them: real programs, a home of their own.
//!
//! A comment `peers 5` names the failure mode of other tools that the test keeps out (design notes).

#![cfg(target_os = "linux")]

mod main_job;

use acpd_test::harness::{Agent, Config, TestEnv};

/// A home with these agents; the first one is the default.
fn home(agents: impl IntoIterator<Item = Agent>) -> TestEnv {
    home_with(&Config::new(agents))
}

/// A home with this configuration.
fn home_with(config: &Config) -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_acpd"), config)
}

/// A well-behaved agent.
fn echo() -> Agent {
    Agent::new("echo")
}
