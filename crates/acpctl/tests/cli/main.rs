//! The `acpctl` binary in a throw-away home, against a daemon that a thread of the test plays.
#![cfg(unix)]

mod acp;
mod commands;
mod export;
mod handoff;
mod log;
mod pending;
mod plain;
mod remove;
mod restart;
mod rows;
mod run;
mod service;
mod set_up;
mod settings;
mod support;
mod terminal;
mod watching;
mod worktree;
