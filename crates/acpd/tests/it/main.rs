//! The daemon, `acpctl` and the scripted agent as a user has them: real programs, a home of their own.
//!
//! A comment `peers 5` names the failure mode of other tools that the test keeps out (design notes).

#![cfg(target_os = "linux")]

mod a_day;
mod backup;
mod clients;
mod crashes;
mod credentials;
mod daemon;
mod database;
mod default_agents;
mod delegation;
mod desktop;
mod discovering;
mod disk;
mod door;
mod editors;
mod environment;
mod hooks;
mod hostile;
mod hostile_client;
mod hosts;
mod login;
mod mcp_host;
mod others;
mod recovering;
mod reporting;
mod retention;
mod screens;
mod scripts;
mod service;
mod sessions;
mod starting;
mod stopping;
mod surviving;
mod tcp;
mod terminals;
mod tracing;
mod transcripts;
mod version2;
mod web;
mod wire;
mod workspace_tools;

use std::time::{Duration, Instant};

use acpd_test::harness::{Agent, Config, TestEnv};

/// A home with these agents; the first one is the default.
fn home(agents: impl IntoIterator<Item = Agent>) -> TestEnv {
    home_with(&Config::new(agents))
}

/// A home with this configuration.
fn home_with(config: &Config) -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_acpd"), config)
}

fn echo() -> Agent {
    Agent::new("echo")
}

/// An agent that does not end before it is killed.
fn stubborn() -> Agent {
    let agent = echo().flags("ignore-eof ignore-term");
    agent.set("stop.eof", "\"100ms\"").set("stop.term", "\"100ms\"")
}

/// How long an answer may take that needs no waiting, on a busy machine: less than any timeout of acpd's.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Does something that must not take longer than an answer that needs no waiting.
fn at_once<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    let took = start.elapsed();
    assert!(took < AT_ONCE, "{what} took {took:?}");
    done
}
