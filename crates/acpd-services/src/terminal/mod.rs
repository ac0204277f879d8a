//! `terminal/*`: commands that acpd runs for an agent.
//!
//! A terminal is a process in a session and group of its own, without input, whose stdout and stderr are one
//! pipe. In the daemon it has a keeper between it and us ([`acpd_sys::keeper`]), on systems that have such. Three threads look after it: the first one reads the pipe and keeps the last of it; the second
//! one waits for the process, which stays a zombie so that its group id stays its own; the third one ends
//! the tree when it is to end, and reaps the process when nothing of the tree is left
//! ([`acpd_sys::tree::Tree`]).

mod error;
mod keeper;
mod leftovers;
mod output;
mod start;
mod types;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use error::TerminalError;
pub use leftovers::end_leftovers;
pub use types::{
    Children, CreateTerminal, Exit, MOST_IN_ALL, MOST_OF_OWNER, MOST_OUTPUT, Output, USUAL_OUTPUT,
};

use keeper::Gone;
use start::Terminal;

/// All terminals. Dropped, it ends them like [`Terminals::end`], as long as this process lives.
pub struct Terminals {
    children: Arc<dyn Children>,
    grace: Duration,
    /// The program that can be a keeper, if commands get one.
    exe: Option<PathBuf>,
    held: HashMap<String, Terminal>,
    /// Released, and maybe not gone yet.
    ending: Vec<Gone>,
}

impl Terminals {
    /// No terminals yet. `grace` is the time from SIGTERM to SIGKILL.
    pub fn new(children: Arc<dyn Children>, grace: Duration) -> Terminals {
        Terminals { children, grace, exe: None, held: HashMap::new(), ending: Vec::new() }
    }

    /// Adds a [keeper](acpd_sys::keeper) for each command: `exe` is the file of this program, which calls
    /// [`acpd_sys::keeper::run`] first if its argument requests that.
    #[must_use]
    pub fn with_keepers(self, exe: PathBuf) -> Terminals {
        Terminals { exe: Some(exe), ..self }
    }

    /// Runs a command (`terminal/create`).
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
        let terminal = start::start(&request, &self.children, self.grace, self.exe.as_deref())?;
        self.held.insert(request.id, terminal);
        Ok(())
    }

    /// Returns the output of a command so far (`terminal/output`).
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
            // The reader has gone: the output is complete as it is.
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

    /// Ends and forgets a terminal (`terminal/release`). It is forgotten at once; the future
    /// completes when nothing of it is left, even if it is not awaited.
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

async fn all_gone(all: Vec<Gone>) {
    for mut gone in all {
        gone.wait().await;
    }
}
