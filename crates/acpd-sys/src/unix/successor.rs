//! The daemon that takes this one's place: the next program in the same process.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::door::Handed;
use crate::lock::InstanceLock;
use crate::{inherit, limits};

/// `PID LOCK [SOCKET]`: for the process with that pid, the numbers of the descriptors.
const VARIABLE: &str = "ACPD_HERITAGE";

/// `true` where the next daemon has the terminal of this one.
pub const KEEPS_TERMINAL: bool = true;

/// The handles that a daemon passes to its successor, so that no other process gets in between.
#[derive(Debug)]
pub struct Heritage {
    /// The lock that makes a daemon the only one.
    pub lock: InstanceLock,
    /// The socket, if it is the daemon's own.
    pub socket: Option<Handed>,
}

impl Heritage {
    /// Takes over the handles of the daemon before us, if there was one: its lock is at this path.
    pub fn take(lock: &Path) -> Option<Heritage> {
        let text = std::env::var(VARIABLE).ok()?;
        let mut numbers = text.split(' ').map(|number| number.parse::<i32>().ok());
        if numbers.next()? != i32::try_from(std::process::id()).ok() {
            return None;
        }
        // Both are taken before either is judged, so that one that is not used is closed.
        let mut take = || inherit::take(numbers.next()??).ok();
        let (file, socket) = (take(), take());
        let lock = InstanceLock::inherited(file?, lock).ok()?;
        Some(Heritage { lock, socket })
    }

    /// Executes the next daemon in place of this process; returns only if that fails.
    pub fn pass_to(self, mut command: Command) -> io::Result<()> {
        // An unchanged limit does no harm.
        let _ = limits::restore();
        // The next program is told of its own descriptors, not of those that were left to us.
        command.env_remove(VARIABLE);
        // Without it the next daemon starts like any other.
        if let Ok(text) = self.leave() {
            command.env(VARIABLE, text);
        }
        Err(command.exec())
    }

    fn leave(&self) -> io::Result<String> {
        let mut text = format!("{} {}", std::process::id(), inherit::leave(self.lock.as_fd())?);
        if let Some(socket) = &self.socket {
            text = format!("{text} {}", inherit::leave(socket.as_fd())?);
        }
        Ok(text)
    }
}
