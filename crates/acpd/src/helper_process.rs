//! Runs commands for the daemon that are no agents: hooks, commands that tell credentials, the trial of a
//! program before a restart. Each leads a process group of its own, which ends with it.

use std::io::{self, PipeReader};
use std::process::{Child, Command};
use std::time::Duration;

use acpd_sys::process::{ExitKind, detach_child, wait_leader};
use acpd_sys::runtime::pipe_receiver;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::host::Reaper;

/// How long what it wrote is read on when its group is gone, if others hold its output open.
const REST: Duration = Duration::from_millis(500);

/// How a command ended.
#[derive(Debug)]
pub enum End {
    Exit(ExitKind),
    /// The time limit was over.
    Late,
    Stopped,
    Unknown,
}

/// Sets a command apart from the daemon and from every agent.
pub fn set_apart(command: &mut Command) {
    // Another mark, and not none: it belongs to no agent, even if an agent has started the daemon.
    command.env("ACPD_HOST", "-");
    detach_child(command);
}

/// Waits for the end of a command and talks with it meanwhile; then the rest of its group is ended.
/// `stop` is dropped by its sender when the daemon ends.
pub async fn run_to_end(
    child: Child,
    reaper: Reaper,
    talk: impl Future,
    limit: Duration,
    stop: &mut watch::Receiver<()>,
) -> End {
    let pid = child.id();
    let exited = spawn_blocking(move || wait_leader(pid));
    let late = tokio::time::sleep(limit);
    tokio::pin!(talk, late, exited);
    let mut talking = true;
    let end = loop {
        tokio::select! {
            exit = &mut exited => break match exit {
                Ok(Ok(exit)) => End::Exit(exit),
                _ => End::Unknown,
            },
            () = &mut late => break End::Late,
            // Nothing is ever sent.
            _ = stop.changed() => break End::Stopped,
            _ = &mut talk, if talking => talking = false,
        }
    };
    let discard = move || {
        // All others in its group go with it, and become children of ours.
        reaper.discard(child);
        reaper.reap_orphans();
    };
    spawn_blocking(discard).await.ok();
    if talking {
        tokio::time::timeout(REST, talk).await.ok();
    }
    end
}

/// Reads the output of a command, until all writers have closed it or it was `most` bytes.
pub async fn read(output: PipeReader, most: u64, said: &mut Vec<u8>) -> io::Result<()> {
    pipe_receiver(output)?.take(most).read_to_end(said).await?;
    Ok(())
}
