//! What the relay wants of an agent process, and what it hears of it.

use acpd_core::ids::HostId;
use acpd_core::{HostEvent, ToHost};
use tokio::sync::mpsc;

pub trait AgentHost {
    /// Does something for it.
    fn tell(&mut self, order: ToHost);

    /// The end of the process cannot be put on disk, and the daemon ends: the host leaves what it keeps
    /// to the next daemon, without a process. Comes after [`HostEvent::Gone`], which is reported once
    /// more when that is done. Returns whether anything is kept.
    fn dismiss(&mut self) -> bool;
}

/// Where hosts report to. Bounded: a full channel holds the processes back.
pub type HostEvents = mpsc::Sender<(HostId, HostEvent)>;
