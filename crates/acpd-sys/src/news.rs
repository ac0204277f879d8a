//! Words between a daemon and whoever started it: what is asked of it, and what it tells.

/// What the system, a terminal or another process asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Stop,
    /// The configuration as it is now.
    Reload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub wish: Wish,
    /// What the system calls it.
    pub name: &'static str,
    /// The process that asks; 0 if none does, or it is not known.
    pub sender: i32,
}

/// What the service manager hears.
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
