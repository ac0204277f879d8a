//! The agent host process: it owns one agent, keeps its output until the daemon has committed it,
//! and outlives the daemon.
//!
//! - [`launch`]: what it is told when it starts, and how the daemon starts it;
//! - [`frame`]: what it and a daemon say to each other;
//! - [`shim_dir`]: the directory by which the next daemon finds it, and what it leaves there;
//! - [`orphans`]: how to end an agent whose shim was killed.
//!
//! Architecture invariants: it never parses what passes through it; one thread around `poll`; it
//! never waits for a daemon, an agent or a disk other than there; its buffers grow on demand, are
//! bounded, and are given back.

mod agent;
mod cgroup;
mod errors;
pub mod frame;
mod input;
pub mod launch;
mod link;
pub mod orphans;
mod output;
mod shim;
pub mod shim_dir;
mod stop;
mod wire;

pub use shim::run;
