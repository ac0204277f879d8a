//! Users (ids on Unix, SIDs on Windows), and the user at the other end of a connection.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

/// The process at the other end of a connection, at the time of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub uid: UserId,
    /// For logs only: pids are reused. Not every system reports it.
    pub pid: Option<u32>,
}

impl Peer {
    /// Returns whether the peer is the user of this process. An administrator is another user.
    pub fn is_ours(&self) -> bool {
        self.uid == own_uid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_user_is_let_in() {
        let peer = |uid, pid| Peer { uid, pid };
        assert!(peer(own_uid(), None).is_ours() && peer(own_uid(), Some(1)).is_ours());
        let us = std::process::id();
        assert!(!peer(nobody(), None).is_ours() && !peer(nobody(), Some(us)).is_ours());
    }
}
