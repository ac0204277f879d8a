#[cfg(target_os = "linux")]
use std::fs;
use std::fs::Permissions;
use std::io;
#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike as _};

use super::StaleError;
use crate::files::{self, DirError};
use crate::users::{Peer, UserId};
use crate::wait::{Interest, Source, until_ready};

pub type Stream = UnixStream;

/// A non-blocking socket that only this user can reach.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Listens at this path, in a private directory. The socket of a dead process is removed.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        if let Some(parent) = path.parent() {
            files::private_dir(parent).map_err(io::Error::other)?;
        }
        clear_stale_socket(path).map_err(io::Error::other)?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Listener(listener))
    }

    /// Accepts a connection; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        let stream = self.0.accept()?.0;
        // Some systems copy the flag from the listener.
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    /// Waits for a connection; [`io::ErrorKind::TimedOut`] after the deadline.
    pub fn accept_until(&self, deadline: Instant) -> io::Result<Stream> {
        if until_ready(self.0.as_fd(), Interest::Read, deadline)? {
            self.accept()
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        listener.0.into()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Listener {}

/// Connects to a socket. While the queue of the listener is full, waits for at most `patience`,
/// which must not be zero, then returns [`io::ErrorKind::TimedOut`].
pub fn connect(path: &Path, patience: Duration) -> io::Result<Stream> {
    let socket = stream_socket()?;
    // The limit on sending also limits connecting.
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

/// A Unix socket that no other program inherits.
fn stream_socket() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    return Ok(socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?);
    #[cfg(target_os = "macos")]
    {
        use nix::fcntl::{FcntlArg, FdFlag, fcntl};
        let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
        fcntl(&made, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok(made)
    }
}

/// Returns both ends of a connection inside this process.
pub fn pair() -> io::Result<(Stream, Stream)> {
    UnixStream::pair()
}

/// Starts a program with a connection as its stdin and stdout, and returns the other end. Ctrl-C in
/// the terminal does not reach the program, unless it asks for it.
pub fn start(program: &str, args: &[String]) -> io::Result<(Stream, Child)> {
    let (ours, its) = UnixStream::pair()?;
    let its = OwnedFd::from(its);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""]);
    shell.arg(program).args(args);
    shell.stdin(its.try_clone()?).stdout(its).stderr(Stdio::piped());
    Ok((ours, shell.spawn()?))
}

/// Ends a connection, also for threads that read or write it.
pub fn hang_up(stream: &Stream) {
    let _ = stream.shutdown(Shutdown::Both);
}

pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    peer_of(stream.as_fd())
}

#[cfg(target_os = "linux")]
pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let found = getsockopt(&fd, sockopt::PeerCredentials)?;
    Ok(Peer { uid: found.uid(), pid: u32::try_from(found.pid()).ok().filter(|pid| *pid != 0) })
}

#[cfg(target_os = "macos")]
pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let (uid, _) = nix::unistd::getpeereid(fd)?;
    let pid = getsockopt(&fd, sockopt::LocalPeerPid).ok();
    Ok(Peer { uid: uid.as_raw(), pid: pid.and_then(|pid| u32::try_from(pid).ok()) })
}

#[cfg(not(target_os = "linux"))]
pub fn listener_uid(_addr: SocketAddr) -> Option<UserId> {
    None
}

/// Returns the user who listens on this local port, if the system says so.
#[cfg(target_os = "linux")]
pub fn listener_uid(addr: SocketAddr) -> Option<UserId> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let mut lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines.find_map(|line| listener(line, addr))
}

/// Returns the user in a line of these tables, if the line is a listener at this address.
#[cfg(target_os = "linux")]
fn listener(line: &str, addr: SocketAddr) -> Option<u32> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    if state != LISTEN || u16::from_str_radix(port, 16) != Ok(addr.port()) {
        return None;
    }
    let any = local.bytes().all(|digit| digit == b'0');
    (any || local.ends_with(&hex(addr))).then(|| fields.nth(3)?.parse().ok()).flatten()
}

/// Formats an address as in the tables: words of 32 bits in hexadecimal, in the processor's byte
/// order. An IPv4 address is also the last word of the IPv6 address to which it is mapped.
#[cfg(target_os = "linux")]
fn hex(addr: SocketAddr) -> String {
    let word = |bytes: &[u8]| {
        let word = bytes.try_into().map_or(0, u32::from_ne_bytes);
        format!("{word:08X}")
    };
    match addr.ip() {
        IpAddr::V4(ip) => word(&ip.octets()),
        IpAddr::V6(ip) => ip.octets().chunks(4).map(word).collect(),
    }
}

/// Returns whether the directory of a socket exists. It must belong to this user and be closed to
/// others: otherwise another user could listen there.
pub fn check_place(socket: &Path) -> Result<bool, DirError> {
    let Some(directory) = socket.parent() else { return Ok(false) };
    match directory.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        _ => files::check_private_dir(directory).map(|()| true),
    }
}

/// Returns the identity of a socket file, which another file at the same path does not have; `None`
/// if there is no file, or it cannot be looked at.
pub fn file_id(path: &Path) -> Option<(u64, u64)> {
    Some(files::stamp(path).ok()??.id)
}

/// Returns whether a process listens there, or died without removing its socket.
pub fn is_left(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Marks a socket as used, so that cleaners of temporary directories keep it.
pub fn touch(path: &Path) -> io::Result<()> {
    let now = TimeSpec::UTIME_NOW;
    utimensat(AT_FDCWD, path, &now, &now, UtimensatFlags::NoFollowSymlink)?;
    Ok(())
}

/// Removes the socket of a dead daemon, which refuses a connection. A missing socket is no error.
/// Call it under the instance lock: another daemon might be between its bind and its listen.
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_address_and_port() {
        let addr = "127.0.0.1:631".parse().unwrap();
        let line = |local: &str, state: &str| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 12 1"
            )
        };
        if cfg!(target_endian = "little") {
            assert_eq!(listener(&line("0100007F:0277", "0A"), addr), Some(1000));
            assert_eq!(listener(&line("0200007F:0277", "0A"), addr), None);
        }
        assert_eq!(listener(&line("00000000:0277", "0A"), addr), Some(1000));
        assert_eq!(listener(&line("00000000:0277", "01"), addr), None);
        assert_eq!(listener(&line("00000000:0278", "0A"), addr), None);
    }
}
