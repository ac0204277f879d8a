//! What the relay wants of an agent process, and what it hears of it.

use acpd_core::ids::HostId;
use acpd_core::{HostEvent, StopStep};
use bytes::Bytes;
use tokio::sync::mpsc;

/// One agent process.
pub trait AgentHost {
    /// Writes a line to its stdin. Numbers start at 1 and have no gaps; a number that was taken
    /// before is ignored, so a line may be handed over again after a reconnect.
    fn write(&mut self, chunk: u64, line: Bytes);

    /// Output up to this byte offset is committed and need not be kept.
    fn ack(&mut self, offset: u64);

    /// Takes a step of the stop ladder.
    fn stop(&mut self, step: StopStep);

    /// From now on the process is busy, or idle: that decides how long it may outlive the daemon.
    fn lease(&mut self, busy: bool);

    /// The end of the process is on disk. Comes after [`HostEvent::Gone`], or never.
    fn forget(&mut self);

    /// The end of the process cannot be put on disk, and the daemon ends: the host leaves what it keeps
    /// to the next daemon, without a process. Comes after [`HostEvent::Gone`], which is reported once
    /// more when that is done. Returns whether anything is kept.
    fn dismiss(&mut self) -> bool;

    /// Writes a line about the process into its log.
    fn note(&mut self, text: &str);
}

/// Where hosts report to. Bounded: a full channel holds the processes back.
pub type HostEvents = mpsc::Sender<(HostId, HostEvent)>;
