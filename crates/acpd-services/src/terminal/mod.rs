//! `terminal/*`: commands that acpd runs for an agent; and lines of the user's configuration.
//!
//! A terminal is a process in its own session and group, without input; stdout and stderr are one
//! pipe. On Linux the daemon puts a keeper above it ([`acpd_sys::keeper`]). Three threads serve a
//! terminal:
//!
//! - one reads the pipe and keeps the last bytes;
//! - one waits for the process, which stays a zombie so that its group id is not reused;
//! - one ends the tree ([`acpd_sys::tree::Tree`]), and reaps the process when nothing of it is
//!   left.

mod error;
mod keeper;
mod leftovers;
mod output;
mod start;
mod types;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use error::TerminalError;
pub use leftovers::end_leftovers;
pub use types::{
    Children, CreateTerminal, Exit, MOST_IN_ALL, MOST_OF_OWNER, MOST_OUTPUT, Output, USUAL_OUTPUT,
};

use start::Terminal;
use types::Gone;

/// All terminals. Dropping them ends them like [`Terminals::end`], as long as this process lives.
pub struct Terminals {
    children: Arc<dyn Children>,
    grace: Duration,
    /// Program of the keepers; `None` for commands without keepers.
    exe: Option<PathBuf>,
    held: HashMap<String, Terminal>,
    /// Released terminals, of which something may still run.
    ending: Vec<Gone>,
}

impl Terminals {
    /// `grace` is the time from SIGTERM to SIGKILL. With the file `exe` of this program, which calls
    /// [`acpd_sys::keeper::run`] first if its argument requests that, each command has a
    /// [keeper](acpd_sys::keeper).
    pub fn new(children: Arc<dyn Children>, grace: Duration, exe: Option<PathBuf>) -> Terminals {
        Terminals { children, grace, exe, held: HashMap::new(), ending: Vec::new() }
    }

    /// Runs a command (`terminal/create`). After an error nothing runs.
    pub fn create(&mut self, request: CreateTerminal) -> Result<(), TerminalError> {
        debug_assert!(!self.held.contains_key(&request.id), "the ids of terminals are unique");
        self.ending.retain(|gone| gone.has_changed().is_ok());
        let owned = self.held.values().filter(|terminal| terminal.owner == request.owner);
        if owned.count() >= MOST_OF_OWNER {
            return Err(TerminalError::TooManyOfOwner);
        }
        if self.held.len() + self.ending.len() >= MOST_IN_ALL {
            return Err(TerminalError::TooMany);
        }
        let terminal = start::start(&request, &self.children, self.grace, self.exe.as_deref())?;
        self.held.insert(request.id, terminal);
        Ok(())
    }

    /// Returns the output of a command so far (`terminal/output`).
    pub fn output(&self, id: &str) -> Result<Output, TerminalError> {
        Ok(self.get(id)?.state.borrow().output())
    }

    /// Waits for the end of a command (`terminal/wait_for_exit`), and returns the output up to
    /// then. Processes that the command left in the background may continue to write.
    pub fn wait(
        &self,
        id: &str,
    ) -> Result<impl Future<Output = self::Output> + Send + use<>, TerminalError> {
        let mut state = self.get(id)?.state.clone();
        Ok(async move {
            if let Ok(ended) = state.wait_for(|state| state.exit.is_some()).await {
                return ended.output();
            }
            // The reader has ended: the output is complete.
            let mut last = state.borrow().output();
            last.exit.get_or_insert_default();
            last
        })
    }

    /// Ends a command (`terminal/kill`): SIGTERM to its group, or to all that is left if the
    /// command has ended by itself; after the grace SIGKILL to its tree. Output and exit stay
    /// available.
    pub fn kill(&self, id: &str) -> Result<(), TerminalError> {
        self.get(id)?.end();
        Ok(())
    }

    /// Ends and forgets a terminal (`terminal/release`). The future need not be awaited; it
    /// completes when nothing of the terminal is left.
    pub fn release(
        &mut self,
        id: &str,
    ) -> Result<impl Future<Output = ()> + Send + use<>, TerminalError> {
        let terminal = self.held.remove(id);
        let terminal = terminal.ok_or_else(|| TerminalError::Unknown { id: id.to_owned() })?;
        self.ending.push(terminal.gone.clone());
        Ok(all_gone(vec![terminal.gone.clone()]))
    }

    /// Releases all terminals. The future completes when nothing is left of them and of those
    /// released before.
    pub fn end(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let held = self.held.drain().map(|(_, terminal)| terminal.gone.clone());
        all_gone(held.chain(self.ending.drain(..)).collect())
    }

    fn get(&self, id: &str) -> Result<&Terminal, TerminalError> {
        self.held.get(id).ok_or_else(|| TerminalError::Unknown { id: id.to_owned() })
    }
}

async fn all_gone(all: Vec<Gone>) {
    for mut gone in all {
        gone.changed().await.ok();
    }
}
