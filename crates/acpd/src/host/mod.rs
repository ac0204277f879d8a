//! Agent processes and their shims.
//!
//! A shim owns one agent process. It numbers the bytes that the process writes, and keeps them
//! until they are acknowledged. It takes numbered lines, and reports which are written.
//! Exactly-once delivery needs no more (`docs/architecture.md`).
//!
//! ```text
//!  Spawn ─▶ Started ─┬▶ Output… Written… ─▶ Exited ─▶ Gone
//!  Adopt ─▶ Adopted ─┘
//!  Adopt ─▶ Lost ─▶ Gone
//!  Spawn ─▶ Refused
//! ```
//!
//! Architecture invariant: `Gone` comes last, once per host, when no process of the tree is left.

use acpd_core::HostEvent;
use acpd_core::ids::HostId;
use tokio::sync::mpsc;

mod launcher;
mod orphan_shims;
mod reaper;
mod shim;

pub use launcher::{Agents, COMMAND_GRACE};
pub use reaper::Reaper;
pub use shim::Shim;

/// Reports of shims. Bounded: a full channel holds the agents back.
pub type HostEvents = mpsc::Sender<(HostId, HostEvent)>;
