//! Peers of sockets, and socket files that are left over.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{UnixAddr, setsockopt};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike as _};
use thiserror::Error;

use crate::dir::{self, DirError};
use crate::{file, os};

pub use crate::process_table::{Peer, own_uid};
pub use crate::user::{UserId, may_do_anything};

/// One end of a connection.
pub type Stream = UnixStream;

pub type Listener = UnixListener;

/// Why a socket file stays where it is.
#[derive(Debug, Error)]
pub enum StaleError {
    #[error("somebody listens on `{}`", .path.display())]
    InUse { path: PathBuf },
    /// Not a socket, so it is not ours to remove.
    #[error("`{}` is not a socket", .path.display())]
    NotASocket {
        /// The path in question.
        path: PathBuf,
    },
    /// The system gave no answer, or did not remove it.
    #[error("cannot clear the old socket `{}`", .path.display())]
    Io {
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// Connects to a Unix socket, and waits for at most `patience`, which must not be zero, while the server
/// accepts none of the connections that wait there: then [`io::ErrorKind::TimedOut`].
pub fn connect(path: &Path, patience: Duration) -> io::Result<Stream> {
    let socket = os::stream_socket()?;
    // The limit on sending is the one on connecting, too.
    setsockopt(&socket, SendTimeout, &TimeVal::milliseconds(patience.as_millis() as i64))?;
    match nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) => {}
        Err(Errno::EAGAIN) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Waits for a connection, for as long as it takes.
pub fn accept(listener: &Listener) -> io::Result<Stream> {
    listener.accept().map(|(stream, _)| stream)
}

/// Ends a connection, also for threads that read from it or write to it just now.
pub fn hang_up(stream: &Stream) {
    // One that has ended already needs nothing.
    let _ = stream.shutdown(Shutdown::Both);
}

/// The process at the other end.
pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    peer_of(stream.as_fd())
}

/// The process at the other end of this Unix socket.
pub fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    os::peer_of(fd)
}

/// The user whose process listens on this port of this machine, where the system tells.
pub fn listener_uid(addr: SocketAddr) -> Option<UserId> {
    os::listener_uid(addr)
}

/// Checks, before a client says a word, that the directory of the socket is our own and closed
/// to others: a stranger could otherwise listen there in the daemon's place.
pub fn check_server_dir(path: &Path) -> Result<(), DirError> {
    dir::check_private_dir(path)
}

/// Returns whether a socket may be there. An existing directory is checked by [`check_server_dir`].
pub fn check_place(socket: &Path) -> Result<bool, DirError> {
    let Some(directory) = socket.parent() else { return Ok(false) };
    match directory.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        _ => check_server_dir(directory).map(|()| true),
    }
}

/// A socket file, told apart from another one at the same path: its device and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketFile((u64, u64));

impl SocketFile {
    /// The file at this path, or `None` if there is none or it cannot be looked at.
    pub fn at(path: &Path) -> Option<SocketFile> {
        Some(SocketFile(file::stamp(path).ok()??.id))
    }
}

/// Returns whether a socket file is there, of a listener or of a process that died without removing it.
pub fn is_left(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Removes the socket of a process that no longer listens there.
pub fn remove(path: &Path) {
    // Gone already, if another process cleaned up.
    let _ = std::fs::remove_file(path);
}

/// Marks a file as used now, so that cleaners of temporary directories leave it alone.
pub fn touch(path: &Path) -> io::Result<()> {
    let now = TimeSpec::UTIME_NOW;
    utimensat(AT_FDCWD, path, &now, &now, UtimensatFlags::NoFollowSymlink)?;
    Ok(())
}

/// Removes the socket of a daemon that is gone; a missing one is fine. Only a socket that
/// refuses a connection is removed.
///
/// To be called under the instance lock: without it, another daemon might be between its bind
/// and its listen.
pub fn clear_stale_socket(path: &Path) -> Result<(), StaleError> {
    let failed = |source| StaleError::Io { path: path.to_owned(), source };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(StaleError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(StaleError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
