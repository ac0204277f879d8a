//! Runs commands for the daemon that are no agents: hooks, commands that tell credentials, the trial of a
//! program before a restart. Each leads a process group of its own, which ends with it, and with the daemon.

use std::io::{self, PipeReader, PipeWriter};
use std::process::{Child, ChildStdin, Command};
use std::sync::Arc;
use std::time::Duration;

use acpd_sys::process::{ExitKind, detach_child, wait_leader};
use acpd_sys::runtime::pipe_receiver;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::host::Reaper;

/// How long what it wrote is read on when its group is gone, if others hold its output open.
const REST: Duration = Duration::from_millis(500);
/// How long the end of the daemon waits for commands that were killed.
const ENDING: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug)]
pub enum End {
    Exit(ExitKind),
    /// The time limit was over.
    Late,
    Stopped,
    Unknown,
}

impl End {
    /// Returns why the command has no result; `None` if it ended with success.
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

/// Commands that end together: with the daemon, or when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Helpers {
    reaper: Reaper,
    /// Each command has a receiver.
    stop: Arc<watch::Sender<bool>>,
}

impl Helpers {
    pub fn new(reaper: Reaper) -> Helpers {
        Helpers { reaper, stop: Arc::new(watch::Sender::new(false)) }
    }

    /// The right to run commands, which belongs to a task. It counts as a command that runs.
    pub fn helper(&self) -> Helper {
        Helper { reaper: self.reaper.clone(), stop: self.stop.subscribe() }
    }

    /// Ends all commands, and waits until they are gone.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(ENDING, self.stop.closed()).await.is_err() {
            tracing::error!("some commands of the daemon did not end");
        }
    }
}

/// Runs commands until [`Helpers`] ends them.
#[derive(Debug, Clone)]
pub struct Helper {
    reaper: Reaper,
    stop: watch::Receiver<bool>,
}

impl Helper {
    /// Commands that can be ended before the others.
    pub fn apart(&self) -> Helpers {
        Helpers::new(self.reaper.clone())
    }

    /// Returns when all commands are to end.
    pub async fn is_stopped(&self) {
        // An error means that the sender is gone, which is a stop, too.
        self.stop.clone().wait_for(|stop| *stop).await.ok();
    }

    /// Starts a command of the user, and waits for its end. `prepare` gets the end of a pipe for the command to write
    /// to; `talk` gets the other end, and the input of the command if that is a pipe.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn run<T: Future>(
        &self,
        prepare: impl FnOnce(PipeWriter) -> io::Result<Command> + Send + 'static,
        talk: impl FnOnce(Option<ChildStdin>, PipeReader) -> T,
        limit: Duration,
    ) -> io::Result<End> {
        let reaper = self.reaper.clone();
        let start = move || {
            let (output, written) = io::pipe()?;
            let mut command = prepare(written)?;
            set_apart(&mut command);
            Ok((reaper.start_users(&mut command)?, output))
        };
        // Away from the runtime: a program or a directory may be on a disk that does not answer.
        let (mut child, output) =
            spawn_blocking(start).await.map_err(io::Error::other).flatten()?;
        let talk = talk(child.stdin.take(), output);
        Ok(self.run_to_end(child, talk, limit).await)
    }

    /// Waits for the end of a command and talks with it meanwhile; then the rest of its group is ended.
    async fn run_to_end(&self, child: Child, talk: impl Future, limit: Duration) -> End {
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
                () = self.is_stopped() => break End::Stopped,
                _ = &mut talk, if talking => talking = false,
            }
        };
        let reaper = self.reaper.clone();
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
}

/// Starts a command in the home directory.
pub fn at_home(command: &mut Command) {
    if let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) {
        command.current_dir(home);
    }
}

/// Sets a command apart from the daemon and from every agent.
fn set_apart(command: &mut Command) {
    // Another mark, and not none: it belongs to no agent, even if an agent has started the daemon.
    command.env("ACPD_HOST", "-");
    detach_child(command);
}

/// Reads the output of a command, until all writers have closed it or it was `most` bytes.
pub async fn read(output: PipeReader, most: u64, said: &mut Vec<u8>) -> io::Result<()> {
    pipe_receiver(output)?.take(most).read_to_end(said).await?;
    Ok(())
}
