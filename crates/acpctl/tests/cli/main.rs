//! The `acpctl` binary in a throw-away home, against a daemon that a thread of the test plays.
#![cfg(unix)]

mod acp;
mod archive;
mod commands;
mod export;
mod handoff;
mod hostile;
mod log;
mod pending;
mod plain;
mod remove;
mod restart;
mod rows;
mod run;
mod search;
mod service;
mod set_up;
mod settings;
mod steer;
mod support;
mod terminal;
mod watching;
mod worktree;
