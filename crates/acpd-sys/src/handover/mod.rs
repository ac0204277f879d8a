//! Resources that a daemon gets from a service manager or from the daemon before it, and passes to the next one.

use crate::lock::InstanceLock;
use crate::runtime::ListeningSocket;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::{KEEPS_TERMINAL, ServiceManager};

/// What passes from a daemon to its successor.
#[derive(Debug)]
pub struct Heritage {
    /// The lock that makes a daemon the only one.
    pub lock: InstanceLock,
    /// The socket, if it is the daemon's own and the system can pass it.
    pub socket: Option<ListeningSocket>,
}

/// A report to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// Clients are accepted.
    Ready,
    /// A sign of life.
    Alive,
    Restarting,
    Stopping,
}
