//! Connections that come in, for a process of one thread.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::dir;
use crate::socket::{Listener, Stream, clear_stale_socket};
use crate::wait::Source;

/// A socket that listens for connections. It never waits.
#[derive(Debug)]
pub struct Incoming(Listener);

impl Incoming {
    /// Listens: only we can reach it. What a dead process has left there is cleared.
    pub fn bind(path: &Path) -> io::Result<Incoming> {
        if let Some(parent) = path.parent() {
            dir::private_dir(parent).map_err(io::Error::other)?;
        }
        clear_stale_socket(path).map_err(io::Error::other)?;
        let listener = Listener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Incoming(listener))
    }

    /// Takes up a connection; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&mut self) -> io::Result<Stream> {
        Ok(self.0.accept()?.0)
    }
}

impl AsFd for Incoming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Incoming {}
