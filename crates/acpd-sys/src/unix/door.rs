//! Unix sockets on the runtime: the daemon's door, and its connections to shims.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::{GenericFilePath, ListenerOptions};
use interprocess::os::unix::local_socket::ListenerOptionsExt as _;
use interprocess::os::unix::uds_local_socket::tokio::Listener as UdsListener;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os;
use crate::process_table::Peer;
use crate::socket::peer_of;

/// A socket that listens already, and passes from one program to the next.
pub type Handed = OwnedFd;

/// A connection to a shim.
pub type Link = tokio::net::UnixStream;

/// Listens at this path: only this user can reach it, with any umask. To be called on the runtime.
pub fn listen(path: &Path) -> io::Result<Listener> {
    let options = || -> io::Result<ListenerOptions<'_>> {
        let name = path.to_fs_name::<GenericFilePath>()?;
        // On drop the name stays: a successor may have bound it by then.
        Ok(ListenerOptions::new().name(name).reclaim_name(false))
    };
    match options().and_then(|options| options.mode(0o600).create_tokio()) {
        // Not every system can set the mode of a socket; its directory is private anyway.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            options().and_then(ListenerOptions::create_tokio)
        }
        other => other,
    }
}

/// Takes over a socket that listens already. To be called on the runtime.
pub fn listen_again(socket: Handed) -> io::Result<Listener> {
    let socket = UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    UdsListener::try_from(OwnedFd::from(socket))
        .map(Listener::from)
        .map_err(|error| io::Error::other(error.to_string()))
}

/// The socket itself, which goes on listening; `None` if the system does not let go of it. To be called on the
/// runtime.
pub fn let_go(listener: Listener) -> Option<Handed> {
    let Listener::UdSocket(listener) = listener;
    OwnedFd::try_from(listener).ok()
}

/// The peer: the user as the system has noted it, and the process where the system reports it.
pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    let Stream::UdSocket(unix) = stream;
    peer_of(unix.as_fd())
}

/// Connects to a shim.
pub async fn connect(path: &Path) -> io::Result<Link> {
    Link::connect(path).await
}

/// The process that listens there.
pub fn listener_of(link: &Link) -> io::Result<Peer> {
    peer_of(link.as_fd())
}

/// Tells when something in a directory is removed, or the directory itself, on systems that tell that.
#[derive(Debug)]
pub struct Removals(Option<AsyncFd<File>>);

impl Removals {
    /// Watches a directory. To be called on the runtime.
    pub fn of(dir: &Path) -> Removals {
        // Without it, the socket is looked at from time to time.
        let inotify = os::removals(dir).ok().flatten();
        let register = |inotify| {
            let (inotify, what) = (File::from(inotify), Interest::READABLE);
            // SAFETY: the file owns its descriptor, and keeps it as long as it is registered.
            unsafe { AsyncFd::register_with_interest(inotify, what) }.ok()
        };
        Removals(inotify.and_then(register))
    }

    /// Waits for the next removal.
    pub async fn next(&mut self) {
        let Some(inotify) = &self.0 else { return std::future::pending().await };
        let Ok(mut ready) = inotify.readable().await else { return std::future::pending().await };
        let mut events = [0; 4096];
        while matches!(inotify.get_ref().read(&mut events), Ok(count) if count > 0) {}
        ready.clear_ready();
    }
}
