//! Processes that are to outlive us.

use std::io;
use std::process::{Child, Command, Stdio};

use crate::child::detach_child;
use crate::wait::End;

/// Returns whether we end together with others: never here, only on Windows.
pub fn are_we_bound() -> bool {
    false
}

/// A process that outlives us, and whom we talk with on its stdin and stdout. It stays our child: who reaps ours reaps
/// this one, too.
#[derive(Debug)]
pub struct Talk {
    pub input: End,
    pub output: End,
    process: Child,
}

impl Talk {
    /// Starts it, detached. The command has nothing of our environment
    /// ([`clear_environment`](crate::program::clear_environment)).
    pub fn start(mut command: Command) -> io::Result<Talk> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        detach_child(&mut command);
        let mut process = command.spawn()?;
        let missing = || io::Error::other("its pipes are missing");
        let input = End::new(process.stdin.take().ok_or_else(missing)?)?;
        let output = End::new(process.stdout.take().ok_or_else(missing)?)?;
        Ok(Talk { input, output, process })
    }

    /// Returns whether it ends together with others that we belong to: only on Windows.
    pub fn is_bound(&self) -> bool {
        false
    }

    /// Kills it. It may have ended.
    pub fn kill(&mut self) {
        self.process.kill().ok();
    }
}
