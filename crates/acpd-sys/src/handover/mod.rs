//! Resources that a daemon gets from a service manager or its predecessor, and passes to its
//! successor.

use crate::lock::InstanceLock;
use crate::runtime::ListeningSocket;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

#[derive(Debug)]
pub struct Heritage {
    pub lock: InstanceLock,
    /// `None` if the socket is a service manager's, or the system cannot pass it.
    pub socket: Option<ListeningSocket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// Clients are accepted.
    Ready,
    /// A sign of life.
    Alive,
    Restarting,
    Stopping,
}
