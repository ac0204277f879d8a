//! The next daemon is a new process, which waits for the lock.
//!
//! ```text
//! this daemon: journal closed, socket closed ── starts the next one ── releases the lock, ends
//! the next one:                                     waits for the lock ────────▶ opens the socket
//! ```
//!
//! If a daemon that a client starts meanwhile gets the lock first, it is the next one, and the
//! daemon started here exits. Either of them finds the shims.
#![expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Heritage, ServiceState};
use crate::files::null;
use crate::lock::InstanceLock;
use crate::runtime::ListeningSocket;
use crate::startup::start_apart;

/// Pid of the previous daemon.
const HERITAGE: &str = "ACPD_HERITAGE";

/// The shell of the console would run next to the new process.
pub const KEEPS_TERMINAL: bool = false;

/// Longest wait for the end of the previous daemon.
const PATIENCE: Duration = Duration::from_secs(10);

impl Heritage {
    pub fn take(lock: &Path) -> Option<Heritage> {
        let _before: u32 = std::env::var(HERITAGE).ok()?.parse().ok()?;
        let lock = InstanceLock::acquire_wait(lock, PATIENCE).ok()?;
        Some(Heritage { lock, socket: None })
    }

    /// Starts the next daemon and releases the lock. This daemon must exit then.
    pub fn pass_to(self, mut command: Command) -> io::Result<()> {
        command.env(HERITAGE, std::process::id().to_string());
        start_apart(command, [null()?, null()?, null()?], false).map(drop)
    }
}

/// Windows has no such manager.
#[derive(Debug, Clone, Copy)]
pub struct ServiceManager(());

impl ServiceManager {
    pub fn find() -> ServiceManager {
        ServiceManager(())
    }

    pub fn is_there(&self) -> bool {
        false
    }

    pub fn socket(&self) -> io::Result<Option<ListeningSocket>> {
        Ok(None)
    }

    pub fn keep_socket(&self) {}

    pub fn watchdog(&self) -> Option<Duration> {
        None
    }

    pub fn report(&self, _state: ServiceState) -> io::Result<()> {
        Ok(())
    }
}
