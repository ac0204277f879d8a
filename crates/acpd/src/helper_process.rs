//! Runs commands of the daemon that are no agents: hooks, commands for credentials, the check of a
//! program before a restart. Each leads its own process group, which ends with it, and with the
//! daemon.

use std::io::{self, PipeReader, PipeWriter};
use std::process::{ChildStdin, Command};
use std::sync::Arc;
use std::time::Duration;

use acpd_sys::process::{ExitKind, detach_child, wait_leader};
use acpd_sys::runtime::pipe_receiver;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::host::Reaper;

/// Time to read the output after the group has ended, if others hold it open.
const REST: Duration = Duration::from_millis(500);
/// Longest wait of an ending daemon for killed commands.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub enum End {
    Exit(ExitKind),
    Late,
    Stopped,
    Unknown,
}

impl End {
    /// Returns why the command has no result; `None` after success.
    pub fn problem(&self, program: &str, limit: Duration) -> Option<String> {
        Some(match self {
            End::Exit(ExitKind::Code(0)) => return None,
            End::Exit(exit) => format!("`{program}` ended with {exit}"),
            End::Late => format!("`{program}` took longer than {} s", limit.as_secs()),
            End::Stopped => "the daemon ends".to_owned(),
            End::Unknown => format!("the system does not say how `{program}` ended"),
        })
    }
}

/// Commands that end together, with the daemon at the latest. Clones are the same group.
#[derive(Debug, Clone)]
pub struct Helpers {
    reaper: Reaper,
    /// Each running command has a receiver.
    stop: Arc<watch::Sender<bool>>,
}

impl Helpers {
    pub fn new(reaper: Reaper) -> Helpers {
        Helpers { reaper, stop: Arc::new(watch::Sender::new(false)) }
    }

    /// Ends all commands, and starts no others.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub async fn is_stopped(&self) {
        self.stop.subscribe().wait_for(|stop| *stop).await.ok();
    }

    pub async fn end(&self) {
        self.stop();
        if tokio::time::timeout(ENDING, self.stop.closed()).await.is_err() {
            tracing::error!("some commands of the daemon did not end");
        }
    }

    /// Runs a command of the user to its end, or until `limit`. `prepare` gets a pipe for the output
    /// of the command. `talk` gets the other end of it, and the input of the command if that is a
    /// pipe. Fails if the command cannot be started.
    pub async fn run<T: Future>(
        &self,
        prepare: impl FnOnce(PipeWriter) -> io::Result<Command> + Send + 'static,
        talk: impl FnOnce(Option<ChildStdin>, PipeReader) -> T,
        limit: impl Future,
    ) -> io::Result<End> {
        let mut stop = self.stop.subscribe();
        if *stop.borrow() {
            return Ok(End::Stopped);
        }
        let reaper = self.reaper.clone();
        let start = move || {
            let (output, written) = io::pipe()?;
            let mut command = prepare(written)?;
            // Another mark instead of none: it belongs to no agent, even if an agent has started
            // the daemon.
            command.env("ACPD_HOST", "-");
            detach_child(&mut command);
            Ok((reaper.start_users(&mut command)?, output))
        };
        // Off the runtime: a program or a directory may be on a disk that does not answer.
        let (mut child, output) =
            spawn_blocking(start).await.map_err(io::Error::other).flatten()?;
        let pid = child.id();
        let exited = spawn_blocking(move || wait_leader(pid));
        let talk = talk(child.stdin.take(), output);
        tokio::pin!(talk, limit, exited);
        let mut talking = true;
        let end = loop {
            tokio::select! {
                exit = &mut exited => break match exit {
                    Ok(Ok(exit)) => End::Exit(exit),
                    _ => End::Unknown,
                },
                _ = &mut limit => break End::Late,
                _ = stop.wait_for(|stop| *stop) => break End::Stopped,
                _ = &mut talk, if talking => talking = false,
            }
        };
        let reaper = self.reaper.clone();
        let discard = move || {
            // The rest of its group is killed, too, and becomes children of this process.
            reaper.discard(child);
            reaper.reap_orphans();
        };
        spawn_blocking(discard).await.ok();
        if talking {
            tokio::time::timeout(REST, talk).await.ok();
        }
        Ok(end)
    }
}

pub fn at_home(command: &mut Command) {
    if let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) {
        command.current_dir(home);
    }
}

/// Reads until all writers have closed the pipe, or up to `most` bytes.
pub async fn read(output: PipeReader, most: u64, said: &mut Vec<u8>) -> io::Result<()> {
    pipe_receiver(output)?.take(most).read_to_end(said).await?;
    Ok(())
}
