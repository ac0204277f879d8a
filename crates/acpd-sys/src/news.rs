//! Messages between a daemon and the process that started it: requests and notifications.

/// A request of the system, a terminal or another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Stop,
    /// The configuration as it is now.
    Reload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub wish: Wish,
    /// The system's name for it, such as that of a signal.
    pub name: &'static str,
    /// The process that asks; 0 if none does, or it is not known.
    pub sender: i32,
}

/// A notification to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Clients are let in.
    Ready,
    /// A sign of life.
    Alive,
    /// The next daemon takes this one's place.
    Restarting,
    Stopping,
}
