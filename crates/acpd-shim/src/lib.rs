//! The shim: a small process per agent. It owns the agent's pipes and processes, keeps the agent's
//! output until the daemon has committed it, and outlives the daemon.
//!
//! - [`launch`]: the start by the daemon;
//! - [`frame`]: the protocol with a daemon;
//! - [`shim_dir`]: the directory by which the next daemon finds the shim;
//! - [`orphans`]: the end of an agent whose shim was killed.
//!
//! Architecture invariants: a shim never parses what passes through it; it is one thread around one
//! [`Wait`](acpd_sys::wait::Wait), and waits nowhere else for a daemon or an agent; its buffers
//! grow on demand, are bounded, and are freed again.

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

pub use shim::run;
