//! The `acpctl` binary in a throw-away home, against a daemon that a thread of the test plays.
#![cfg(unix)]

mod acp;
mod commands;
mod log;
mod pending;
mod plain;
mod remove;
mod restart;
mod rows;
mod run;
mod service;
mod support;
mod terminal;
mod watching;
mod worktree;
