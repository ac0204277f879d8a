//! Named pipes instead of Unix sockets: listeners, clients, and how each knows the other.
//!
//! ```text
//! listener                                        client
//! first instance of the name, or nothing    ──▶   opens it, lets itself be identified and no more
//! access list: this user alone              ──▶   owner of the pipe is this user, else it says no word
//! client's process has this user's token    ◀──
//! ```
//!
//! A name belongs to the process that makes its first instance, so the flag for that is always given: a
//! second process fails, instead of listening next to a stranger. The owner of a pipe cannot be made up: it
//! is its maker, or a group that its maker belongs to.
//!
//! A [`Stream`] does overlapped calls and waits for each, so that two threads may read and write at the same time, that a
//! wait may have a limit, and that one thread may end the other's.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle, RawHandle};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_IO_PENDING, ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_BUSY,
    ERROR_PIPE_CONNECTED, ERROR_PIPE_NOT_CONNECTED, ERROR_SEM_TIMEOUT, GetLastError, HANDLE,
};
use windows_sys::Win32::Security::Authorization::SE_KERNEL_OBJECT;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX, ReadFile,
    SECURITY_IDENTIFICATION, WriteFile,
};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId,
    PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_UNLIMITED_INSTANCES,
    PIPE_WAIT, WaitNamedPipeW,
};
use windows_sys::core::BOOL;

use crate::dir::DirError;
use crate::handle::{Event, check, owned, wait_any};
use crate::os::{self, PrivateTo, who_may};
use crate::user::user_of_process;

pub use crate::process_table::{Peer, own_uid};
pub use crate::user::{UserId, may_do_anything};

/// Size of the system's buffer for each direction, in bytes: the same as for a Unix pipe.
pub(crate) const BUFFER: u32 = 64 << 10;

/// Stands for no limit.
const FOR_EVER: u64 = u64::MAX;

/// Why a socket stays where it is.
#[derive(Debug, Error)]
pub enum StaleError {
    #[error("somebody listens on `{}`", .path.display())]
    InUse { path: PathBuf },
    /// The system gave no answer.
    #[error("cannot clear the old socket `{}`", .path.display())]
    Io {
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// One end of a connection.
#[derive(Debug)]
pub struct Stream {
    pipe: OwnedHandle,
    is_server: bool,
    ended: Event,
    /// Limits of waits in milliseconds.
    read_limit: AtomicU64,
    write_limit: AtomicU64,
}

#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    /// The accepting thread holds the lock meanwhile.
    next: Mutex<OwnedHandle>,
}

/// Connects, and waits for at most `patience`, which must not be zero, while the server accepts none of the
/// connections that wait there: then [`io::ErrorKind::TimedOut`].
pub fn connect(path: &Path, patience: Duration) -> io::Result<Stream> {
    let end = Instant::now() + patience;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(FILE_FLAG_OVERLAPPED).security_qos_flags(SECURITY_IDENTIFICATION);
    loop {
        match options.open(path) {
            Ok(file) => return Stream::new(file.into(), false),
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                wait_for_place(path, left)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits until an instance of the pipe is free, which another client may get first.
fn wait_for_place(path: &Path, limit: Duration) -> io::Result<()> {
    let name = wide(path);
    let millis = limit.as_millis().clamp(1, u128::from(u32::MAX - 1)) as u32;
    // SAFETY: the name ends with a zero.
    match check(unsafe { WaitNamedPipeW(name.as_ptr(), millis) }) {
        Err(error) if error.raw_os_error() == Some(ERROR_SEM_TIMEOUT as i32) => {
            Err(io::ErrorKind::TimedOut.into())
        }
        waited => waited,
    }
}

fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}

impl Listener {
    /// Listens on a free name; only this user may connect.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Listener> {
        let path = path.as_ref();
        let next = instance(path, FILE_FLAG_FIRST_PIPE_INSTANCE)?;
        Ok(Listener { path: path.to_owned(), next: Mutex::new(next) })
    }

    /// Waits for a connection up to a time, or until `or_else` is set or has ended: then `None`.
    pub(crate) fn accept_until(
        &self,
        end: Option<Instant>,
        or_else: Option<RawHandle>,
    ) -> io::Result<Option<Stream>> {
        let limit = end.map(|end| end.saturating_duration_since(Instant::now()));
        let mut free = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is open, and `run` keeps the state until the call is over.
        let connected =
            run(&free, or_else, limit, |pipe, state| unsafe { ConnectNamedPipe(pipe, state) });
        match connected {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_CONNECTED as i32) => {}
            // A client came and went.
            Err(error) if error.raw_os_error() == Some(ERROR_NO_DATA as i32) => {}
            Err(error) if is_over(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        self.put_next(&mut free).map(Some)
    }

    /// The connection that has come to the pipe that waited for one.
    pub(crate) fn take(&mut self) -> io::Result<Stream> {
        let mut free = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.put_next(&mut free)
    }

    /// The next one is there before this one can go: the name is never free.
    fn put_next(&self, free: &mut OwnedHandle) -> io::Result<Stream> {
        let pipe = std::mem::replace(free, instance(&self.path, 0)?);
        Stream::new(pipe, true)
    }

    /// The pipe that waits for a connection.
    pub(crate) fn next(&self) -> RawHandle {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).as_raw_handle()
    }
}

/// Waits for a connection, for as long as it takes.
pub fn accept(listener: &Listener) -> io::Result<Stream> {
    listener.accept_until(None, None)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// One more instance of a pipe, for one more connection.
fn instance(path: &Path, first: u32) -> io::Result<OwnedHandle> {
    let private = PrivateTo::user()?;
    let name = wide(path);
    // SAFETY: the name ends with a zero, and the attributes live as long as the call.
    owned(unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
            PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
            PIPE_UNLIMITED_INSTANCES,
            BUFFER,
            BUFFER,
            0,
            &private.attributes(),
        )
    })
}

/// Which way something goes through a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    ToThem,
    ToUs,
}

/// A pipe: our end, which is for overlapped calls, and theirs, which is not. Its name is by chance, and taken.
pub(crate) fn one_way(flow: Flow) -> io::Result<(OwnedHandle, File)> {
    let chance = RandomState::new().hash_one(Instant::now());
    let name = os::socket_at(&std::env::temp_dir(), &format!("pipe-{chance:016x}"));
    let ours = instance(&name, FILE_FLAG_FIRST_PIPE_INSTANCE)?;
    let mut options = OpenOptions::new();
    let theirs = options
        .read(flow == Flow::ToThem)
        .write(flow == Flow::ToUs)
        .security_qos_flags(SECURITY_IDENTIFICATION)
        .open(&name)?;
    Ok((ours, theirs))
}

/// Does an overlapped call and waits for its end. A wait that lasts too long, or that `or_else` ends, is given up:
/// see [`is_over`].
fn run(
    pipe: &OwnedHandle,
    or_else: Option<RawHandle>,
    limit: Option<Duration>,
    begin: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
) -> io::Result<usize> {
    let event = Event::new()?;
    let mut state = OVERLAPPED { hEvent: event.as_raw_handle(), ..OVERLAPPED::default() };
    let pipe = pipe.as_raw_handle();
    // SAFETY: it only tells what the call before has left.
    if begin(pipe, &raw mut state) == 0 && unsafe { GetLastError() } != ERROR_IO_PENDING {
        return Err(io::Error::last_os_error());
    }
    let handles = [Some(event.as_raw_handle()), or_else];
    let handles: Vec<RawHandle> = handles.into_iter().flatten().collect();
    let waited = wait_any(&handles, limit);
    if !matches!(waited, Ok(Some(0))) {
        // SAFETY: the handle is open, and the state is that of the call. It may be over by now.
        unsafe { CancelIoEx(pipe, &raw const state) };
    }
    let mut count = 0;
    // SAFETY: as above. It waits, so that nothing is written to the state or the buffer after it.
    check(unsafe { GetOverlappedResult(pipe, &raw const state, &raw mut count, 1) })?;
    Ok(count as usize)
}

/// Returns whether a call was given up.
fn is_over(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32)
}

impl Stream {
    fn new(pipe: OwnedHandle, is_server: bool) -> io::Result<Stream> {
        let (read_limit, write_limit) = (AtomicU64::new(FOR_EVER), AtomicU64::new(FOR_EVER));
        Ok(Stream { pipe, is_server, ended: Event::new()?, read_limit, write_limit })
    }

    /// Limits how long a read waits: then [`io::ErrorKind::TimedOut`].
    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.read_limit.store(millis(limit), Ordering::Relaxed);
        Ok(())
    }

    /// Limits how long a write waits: then [`io::ErrorKind::TimedOut`].
    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.write_limit.store(millis(limit), Ordering::Relaxed);
        Ok(())
    }

    fn run(
        &self,
        limit: &AtomicU64,
        begin: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
    ) -> io::Result<usize> {
        let ended = self.ended.as_raw_handle();
        if wait_any(&[ended], Some(Duration::ZERO))?.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let limit = limit.load(Ordering::Relaxed);
        let limit = (limit != FOR_EVER).then(|| Duration::from_millis(limit));
        run(&self.pipe, Some(ended), limit, begin).map_err(|error| {
            if is_over(&error) && !matches!(wait_any(&[ended], Some(Duration::ZERO)), Ok(Some(_))) {
                io::ErrorKind::TimedOut.into()
            } else if is_over(&error) || is_end(&error) {
                io::ErrorKind::BrokenPipe.into()
            } else {
                error
            }
        })
    }
}

fn millis(limit: Option<Duration>) -> u64 {
    limit.map_or(FOR_EVER, |limit| limit.as_micros().div_ceil(1000) as u64)
}

/// Returns whether the other end is gone.
pub(crate) fn is_end(error: &io::Error) -> bool {
    let ends = [ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_PIPE_NOT_CONNECTED];
    error.raw_os_error().is_some_and(|code| ends.contains(&(code as u32)))
}

impl From<Stream> for OwnedHandle {
    fn from(stream: Stream) -> OwnedHandle {
        stream.pipe
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(u32::MAX as usize) as u32;
        let place = buffer.as_mut_ptr();
        // SAFETY: the handle is open; the buffer is ours until `run` returns, when the call is over.
        let read = self.run(&self.read_limit, |pipe, state| unsafe {
            ReadFile(pipe, place, length, std::ptr::null_mut(), state)
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            read => read,
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(u32::MAX as usize) as u32;
        let place = bytes.as_ptr();
        // SAFETY: as above.
        self.run(&self.write_limit, |pipe, state| unsafe {
            WriteFile(pipe, place, length, std::ptr::null_mut(), state)
        })
    }

    /// Does nothing: written bytes are in the pipe, and the reader gets them also when this end is closed.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends a connection, also for threads that read from it or write to it just now.
pub fn hang_up(stream: &Stream) {
    stream.ended.set();
}

/// The process at the other end. A server is known by the owner of its pipe, a client by the token of its process.
pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    let pipe = stream.pipe.as_raw_handle();
    if stream.is_server { client_of(pipe) } else { server_of(pipe) }
}

/// The process at the client's end of an open pipe.
pub(crate) fn client_of(pipe: RawHandle) -> io::Result<Peer> {
    let mut pid = 0;
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetNamedPipeClientProcessId(pipe, &raw mut pid) })?;
    Ok(Peer { uid: user_of_process(&os::open(pid)?)?, pid: Some(pid) })
}

/// The process at the server's end of an open pipe.
pub(crate) fn server_of(pipe: RawHandle) -> io::Result<Peer> {
    let mut pid = 0;
    // SAFETY: as above.
    check(unsafe { GetNamedPipeServerProcessId(pipe, &raw mut pid) })?;
    Ok(Peer { uid: who_may(pipe, SE_KERNEL_OBJECT)?.owner, pid: Some(pid) })
}

/// The user whose process listens on this port of this machine, where the system tells.
pub fn listener_uid(addr: SocketAddr) -> Option<UserId> {
    os::listener_uid(addr)
}

/// Returns whether a socket may be there at all. A pipe is in no directory; its owner is looked at.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn check_place(_socket: &Path) -> Result<bool, DirError> {
    Ok(true)
}

/// A name, which no other process can take from its listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketFile(());

impl SocketFile {
    /// Returns the same for every name.
    pub fn at(_path: &Path) -> Option<SocketFile> {
        Some(SocketFile(()))
    }
}

/// Returns `false`: a name goes with its last pipe, so a dead listener leaves no trace.
pub fn is_left(_path: &Path) -> bool {
    false
}

/// Nothing to remove: a name goes with its last pipe.
pub fn remove(_path: &Path) {}

/// Nothing clears names of pipes away.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn touch(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Checks that the name is free: that of a daemon that is gone always is.
pub fn clear_stale_socket(path: &Path) -> Result<(), StaleError> {
    let failed = |source| StaleError::Io { path: path.to_owned(), source };
    match connect(path, Duration::from_millis(1)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::TimedOut => Err(failed(error)),
        Ok(_) | Err(_) => Err(StaleError::InUse { path: path.to_owned() }),
    }
}
