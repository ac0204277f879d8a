//! The `acpctl` binary in a throw-away home, against a daemon that a thread of the test plays.

mod acp;
mod commands;
mod restart;
mod run;
mod support;
mod terminal;
