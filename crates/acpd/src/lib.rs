//! The daemon: tokio glue around the hub of `acpd-core`.
//!
//! One task owns the hub ([`relay`]). Connections ([`clients`]), agent processes ([`host`]), the
//! journal's reader ([`journal`]), the search index ([`search`]), signals ([`signals`]) and the
//! store's writer report to it, and execute its effects.

mod awake;
pub mod check;
pub mod clients;
pub mod clock;
pub mod config;
pub mod copying;
pub mod crash;
pub mod credentials;
pub mod daemon;
pub mod discover;
pub mod door;
pub mod environment;
pub mod failure;
pub mod helper_process;
pub mod hooks;
pub mod host;
mod installed_agents;
pub mod journal;
pub mod log;
pub mod login;
pub mod login_shell;
pub mod logins;
pub mod mcp;
mod real_cwd;
pub mod relay;
pub mod search;
pub mod service;
pub mod services;
pub mod settings;
pub mod signals;
mod summary;
pub mod terminals;
pub mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a value that is whole even after a panic of its last owner.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
