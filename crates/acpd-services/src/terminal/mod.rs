//! `terminal/*`: commands that acpd runs for an agent.
//!
//! A terminal is a process in a session and group of its own, without input, whose stdout and stderr
//! are one pipe. Three look after it: a task reads the pipe and keeps the last of it; a thread waits
//! for the process, which stays a zombie so that its group id stays its own; and a second thread
//! ends the tree when it is to end, and lets the process go when nothing of the tree is left
//! ([`acpd_sys::tree::Tree`]).

mod error;
mod keeper;
mod leftovers;
mod output;
mod start;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use acpd_sys::process::ExitKind;
use nix::sys::signal::Signal;
use tokio::sync::watch;

pub use error::TerminalError;
pub use leftovers::end_leftovers;

use keeper::{Gone, Job};
use output::State;

/// Terminals of one owner at a time.
pub const MOST_OF_OWNER: usize = 64;
/// Terminals of all owners at a time, those included that are released and not gone yet.
pub const MOST_IN_ALL: usize = 256;
/// Bytes of output that are kept if the request does not say.
pub const USUAL_OUTPUT: u64 = 1 << 20;
/// The most bytes of output that are kept, whatever the request says.
pub const MOST_OUTPUT: u64 = 2 << 20;

/// Who makes and reaps the children of this process. One that reaps whatever nobody waits for must
/// leave these alone.
pub trait Children: Send + Sync {
    /// Starts a child that is not reaped before one of the other two is called for it.
    fn start(&self, command: &mut Command) -> io::Result<Child>;
    /// Kills and reaps a child that was just started and cannot be used.
    fn discard(&self, child: Child);
    /// Reaps a child that has ended.
    fn reap(&self, pid: u32);
}

/// What is to be run.
#[derive(Debug, Clone)]
pub struct CreateTerminal {
    /// How it will be called; unique among all.
    pub id: String,
    /// The agent process whose terminal it is.
    pub owner: u64,
    /// A program; or, if there are no arguments and no program of this name, and there is white space
    /// in it, a line for `sh -c`: that is what several agents send.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The environment that the agent has as well.
    pub base_env: Vec<(OsString, OsString)>,
    /// What the request adds to it.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Bytes of output to keep, the last ones; [`USUAL_OUTPUT`] if it is not said, [`MOST_OUTPUT`] at
    /// most.
    pub output_byte_limit: Option<u64>,
    /// `ACPD_HOST` of its processes: unique among all that acpd has ever started, its agents too.
    pub marker: String,
}

/// How a command ended (`TerminalExitStatus`). Nothing is known if the system did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its code, if it exited.
    pub code: Option<u32>,
    /// The name of the signal that ended it, like `SIGTERM`.
    pub signal: Option<String>,
}

/// What a command has written so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its last bytes, as text; what is no UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// Whether there was more before.
    pub truncated: bool,
    /// How it ended, if it did. All that it wrote before is in the text then.
    pub exit: Option<Exit>,
}

/// All terminals. Dropped, it ends them like [`Terminals::end`], as long as this process lives.
pub struct Terminals {
    children: Arc<dyn Children>,
    grace: Duration,
    held: HashMap<String, Terminal>,
    /// Released, and maybe not gone yet.
    ending: Vec<Gone>,
}

struct Terminal {
    owner: u64,
    jobs: mpsc::Sender<Job>,
    state: watch::Receiver<State>,
    gone: Gone,
}

impl Terminals {
    /// No terminals yet. `grace` is the time from SIGTERM to SIGKILL.
    pub fn new(children: Arc<dyn Children>, grace: Duration) -> Terminals {
        Terminals { children, grace, held: HashMap::new(), ending: Vec::new() }
    }

    /// Runs a command (`terminal/create`). To be called on a runtime.
    ///
    /// # Errors
    /// See [`TerminalError`]; nothing runs then.
    pub fn create(&mut self, request: CreateTerminal) -> Result<(), TerminalError> {
        self.ending.retain(|gone| !gone.is_gone());
        let owned = self.held.values().filter(|terminal| terminal.owner == request.owner);
        if self.held.contains_key(&request.id) {
            return Err(TerminalError::Taken { id: request.id });
        }
        if owned.count() >= MOST_OF_OWNER {
            return Err(TerminalError::TooManyOfOwner);
        }
        if self.held.len() + self.ending.len() >= MOST_IN_ALL {
            return Err(TerminalError::TooMany);
        }
        let terminal = start::start(&request, &self.children, self.grace)?;
        self.held.insert(request.id, terminal);
        Ok(())
    }

    /// What a command has written so far (`terminal/output`).
    ///
    /// # Errors
    /// When there is no such terminal.
    pub fn output(&self, id: &str) -> Result<Output, TerminalError> {
        Ok(self.get(id)?.state.borrow().output())
    }

    /// The end of a command (`terminal/wait_for_exit`), with what it had written by then, for as many
    /// as want to know it. A command that has ended may have left processes in the background that go
    /// on and write.
    ///
    /// # Errors
    /// When there is no such terminal.
    pub fn wait(
        &self,
        id: &str,
    ) -> Result<impl Future<Output = self::Output> + Send + use<>, TerminalError> {
        let mut state = self.get(id)?.state.clone();
        Ok(async move {
            if let Ok(ended) = state.wait_for(|state| state.exit.is_some()).await {
                return ended.output();
            }
            // Nobody reads any more: what there is, is all.
            let mut last = state.borrow().output();
            last.exit.get_or_insert_default();
            last
        })
    }

    /// Ends a command (`terminal/kill`): SIGTERM to its group, or to all that is left if it has ended
    /// itself; after the grace SIGKILL to all of its tree. Its output and exit can still be asked for.
    ///
    /// # Errors
    /// When there is no such terminal.
    pub fn kill(&self, id: &str) -> Result<(), TerminalError> {
        self.get(id)?.end();
        Ok(())
    }

    /// Ends and forgets a terminal (`terminal/release`). It is forgotten at once; the future tells when
    /// nothing of it is left, whether or not somebody waits for that.
    ///
    /// # Errors
    /// When there is no such terminal.
    pub fn release(
        &mut self,
        id: &str,
    ) -> Result<impl Future<Output = ()> + Send + use<>, TerminalError> {
        let terminal = self.held.remove(id);
        let terminal = terminal.ok_or_else(|| TerminalError::Unknown { id: id.to_owned() })?;
        self.ending.push(terminal.gone.clone());
        Ok(all_gone(vec![terminal.gone.clone()]))
    }

    /// The same for all terminals of an owner: for an agent that has ended.
    pub fn release_all(&mut self, owner: u64) -> impl Future<Output = ()> + Send + use<> {
        let released = self.held.extract_if(|_, terminal| terminal.owner == owner);
        let gone: Vec<Gone> = released.map(|(_, terminal)| terminal.gone.clone()).collect();
        self.ending.extend(gone.iter().cloned());
        all_gone(gone)
    }

    /// Releases all terminals; the future tells when nothing is left of them and of those released
    /// before.
    pub fn end(self) -> impl Future<Output = ()> + Send + use<> {
        let held = self.held.into_values().map(|terminal| terminal.gone.clone());
        all_gone(held.chain(self.ending).collect())
    }

    fn get(&self, id: &str) -> Result<&Terminal, TerminalError> {
        self.held.get(id).ok_or_else(|| TerminalError::Unknown { id: id.to_owned() })
    }
}

impl fmt::Debug for Terminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminals").field("ids", &self.held.keys()).finish_non_exhaustive()
    }
}

impl Terminal {
    fn end(&self) {
        // The thread is gone when the tree is.
        self.jobs.send(Job::End).ok();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

impl From<ExitKind> for Exit {
    fn from(exit: ExitKind) -> Exit {
        match exit {
            ExitKind::Code(code) => Exit { code: u32::try_from(code).ok(), signal: None },
            ExitKind::Signal(number) => {
                let name = Signal::try_from(number).map(Signal::as_str);
                let signal = name.map_or_else(|_| format!("SIG{number}"), str::to_owned);
                Exit { code: None, signal: Some(signal) }
            }
        }
    }
}

async fn all_gone(all: Vec<Gone>) {
    for mut gone in all {
        gone.wait().await;
    }
}
