//! The daemon that takes this one's place: a new process, which waits for the lock that this one lets go of.
//!
//! ```text
//! this daemon: journal closed, door closed ── starts the next one ── lets go of the lock, ends
//! the next one:                                   waits for the lock ────────▶ opens the door
//! ```
//!
//! The pid changes. A daemon that a client starts in between may get the lock first: then it is the next one, and the one
//! that was started here ends. Either of them finds the shims.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::apart::{self, Standard};
use crate::door::Handed;
use crate::lock::InstanceLock;

/// The pid of the daemon before.
const VARIABLE: &str = "ACPD_HERITAGE";

/// `true` where the next daemon has the console of this one: here its shell would continue at the same time.
pub const KEEPS_TERMINAL: bool = false;

/// How long the next daemon waits for the end of the one before.
const PATIENCE: Duration = Duration::from_secs(10);

/// The handles that a daemon passes to the one that takes its place.
#[derive(Debug)]
pub struct Heritage {
    /// The lock that makes a daemon the only one.
    pub lock: InstanceLock,
    /// The socket, which does not pass.
    pub socket: Option<Handed>,
}

impl Heritage {
    /// Takes over the lock of the daemon before us, if there was one: it is at this path. Waits for its end.
    pub fn take(lock: &Path) -> Option<Heritage> {
        let _before: u32 = std::env::var(VARIABLE).ok()?.parse().ok()?;
        let lock = InstanceLock::acquire_wait(lock, PATIENCE).ok()?;
        Some(Heritage { lock, socket: None })
    }

    /// Starts the next daemon, and lets go of the lock. This one is to end then.
    pub fn pass_to(self, mut command: Command) -> io::Result<()> {
        command.env(VARIABLE, std::process::id().to_string());
        apart::start(command, Standard::none()?, false).map(drop)
    }
}
