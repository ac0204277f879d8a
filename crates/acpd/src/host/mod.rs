//! Agent processes, whoever their parent is.
//!
//! A host owns one agent process. It numbers the bytes that the process writes and keeps what is not
//! acknowledged; it takes numbered lines and says which are written. That is all that exactly-once
//! needs (design: `docs/architecture.md`), so the relay does not know what kind of host it has.
//!
//! ```text
//!  Spawn ─▶ Started ─┬▶ Output… Written… ─▶ Exited ─▶ Gone
//!  Adopt ─▶ Adopted ─┘
//!  Adopt ─▶ Lost ─▶ Gone
//!  Spawn ─▶ Refused
//! ```
//!
//! Architecture invariant: `Gone` comes last, once per host, when no process of the tree is left.

mod agent_host;
mod direct;
mod launcher;
mod reaper;
mod shim;

pub use agent_host::{AgentHost, HostEvents};
pub use direct::{Direct, Launch};
pub use launcher::Agents;
pub use reaper::{Leftovers, Reaper};
pub use shim::Shim;
