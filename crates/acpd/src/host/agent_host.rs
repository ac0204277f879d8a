//! What the relay wants of an agent process, and what it hears of it.

use acp_wire::Frame;
use acpd_core::ids::HostId;
use acpd_core::{LeftProcess, SpawnError, StopStep};
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

/// What a host reports, in this order.
#[derive(Debug)]
pub enum HostEvent {
    /// The process runs.
    Started {
        /// Leader's process id.
        pid: u32,
        /// Leader's start time.
        start: u64,
    },
    /// The process could not be started; nothing else is reported.
    Refused(SpawnError),
    /// A process of an earlier daemon was found again.
    Adopted {
        /// Leader's process id.
        pid: u32,
        /// Leader's start time.
        start: u64,
        /// What it has written so far ends here.
        end: u64,
    },
    /// A process of an earlier daemon cannot be spoken with any more; it is being ended.
    Lost {
        /// Why, in words.
        reason: String,
    },
    /// Lines that the process wrote.
    Output(Vec<Frame>),
    /// Every line up to this number is written.
    Written {
        /// Number of the last line.
        chunk: u64,
    },
    /// The leader has ended and what it had written was handed over.
    Exited {
        /// How, in words.
        status: String,
        /// The last lines of its stderr.
        stderr: String,
    },
    /// Who is left of a tree that was killed; answers a look at what is left, at any time.
    Left(Vec<LeftProcess>),
    /// The whole tree is gone.
    Gone,
}

/// Where hosts report to. Bounded: a full channel holds the processes back.
pub type HostEvents = mpsc::Sender<(HostId, HostEvent)>;
