//! ```text
//! listener                                        client
//! first instance of the name, or nothing    ──▶   opens it, lets itself be identified and no more
//! access list: this user alone              ──▶   owner of the pipe is this user, else it sends nothing
//! client's process has this user's token    ◀──
//! ```
//!
//! A name belongs to the maker of its first instance, so a second listener fails instead of sharing
//! it. The owner of a pipe cannot be forged: the owner is the maker, or a group of the maker.
//!
//! A [`Stream`] makes overlapped calls and waits for each. So two threads can read and write at the
//! same time, a wait can have a limit, and one thread can end the other's.
#![expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle, RawHandle};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_BUSY, ERROR_PIPE_CONNECTED,
    ERROR_SEM_TIMEOUT, HANDLE,
};
use windows_sys::Win32::Security::Authorization::SE_KERNEL_OBJECT;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OVERLAPPED, ReadFile, SECURITY_IDENTIFICATION, WriteFile,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId, WaitNamedPipeW,
};
use windows_sys::Win32::System::Threading::CREATE_NEW_PROCESS_GROUP;
use windows_sys::core::BOOL;

use super::StaleError;
use crate::files::DirError;
use crate::handle::{Event, check, is_set, open_to_look, wait_any};
use crate::named_pipe::{Flow, instance, one_way, random_name, wide};
use crate::users::{Peer, UserId, user_of_process, who_may};
use crate::wait::{Interest, OverlappedCall, Source, is_end};

const FOR_EVER: u64 = u64::MAX;

#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    call: OverlappedCall,
    /// A client came while no call waited for it.
    is_connected: bool,
    // Closed after the call has ended.
    pipe: OwnedHandle,
}

impl Listener {
    pub fn bind(path: &Path) -> io::Result<Listener> {
        clear_stale_socket(path).map_err(io::Error::other)?;
        let pipe = instance(path, true)?;
        let waiting = Waiting { call: OverlappedCall::new()?, is_connected: false, pipe };
        Ok(Listener { path: path.to_owned(), waiting: Mutex::new(waiting) })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn accept(&self) -> io::Result<Stream> {
        let mut waiting = self.waiting();
        waiting.begin()?;
        if !waiting.is_connected {
            match waiting.call.result() {
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(Some(_)) => {}
                Err(error) if has_come(&error) => {}
                Err(error) => return Err(error),
            }
        }
        waiting.is_connected = false;
        // The next instance exists before this one can close: the name is never free.
        let pipe = std::mem::replace(&mut waiting.pipe, instance(&self.path, false)?);
        Stream::new(pipe, true)
    }

    pub fn accept_until(&self, deadline: Instant) -> io::Result<Stream> {
        self.accept_until_or(deadline, None)
    }

    /// Also waits for the end of a process, then returns [`io::ErrorKind::WouldBlock`].
    pub(crate) fn accept_until_or(
        &self,
        deadline: Instant,
        process: Option<RawHandle>,
    ) -> io::Result<Stream> {
        let handles: Vec<RawHandle> =
            std::iter::once(self.waiting().handle()).chain(process).collect();
        let left = deadline.saturating_duration_since(Instant::now());
        match wait_any(&handles, Some(left))? {
            Some(_) => self.accept(),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Waiting {
    fn begin(&mut self) -> io::Result<()> {
        if self.is_connected || self.call.is_begun() {
            return Ok(());
        }
        let pipe = self.pipe.as_raw_handle();
        // SAFETY: the handle is open, and the call keeps the state until it is over.
        let begun =
            self.call.begin(pipe, |pipe, _, state| unsafe { ConnectNamedPipe(pipe, state) });
        match begun {
            Err(error) if has_come(&error) => {
                self.is_connected = true;
                self.call.event.set();
                Ok(())
            }
            begun => begun,
        }
    }

    /// Begins to wait, and returns a handle that is set when a client is there.
    fn handle(&mut self) -> RawHandle {
        if self.begin().is_err() {
            // The next `accept` returns the error.
            self.call.event.set();
        }
        self.call.event.as_raw_handle()
    }
}

/// Returns whether a client is connected, or was.
fn has_come(error: &io::Error) -> bool {
    let come = [ERROR_PIPE_CONNECTED, ERROR_NO_DATA];
    error.raw_os_error().is_some_and(|code| come.contains(&(code as u32)))
}

impl Source for Listener {
    fn begin(&mut self, _interest: Interest, handles: &mut Vec<RawHandle>) {
        handles.push(self.waiting().handle());
    }
}

#[derive(Debug)]
pub struct Stream {
    pipe: OwnedHandle,
    /// Output of a program that [`start`] started.
    output: Option<OwnedHandle>,
    is_server: bool,
    ended: Event,
    /// In milliseconds.
    read_limit: AtomicU64,
    write_limit: AtomicU64,
}

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

/// Waits until an instance of the pipe is free, which another client may still take.
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

impl Stream {
    fn new(pipe: OwnedHandle, is_server: bool) -> io::Result<Stream> {
        let (read_limit, write_limit) = (AtomicU64::new(FOR_EVER), AtomicU64::new(FOR_EVER));
        let ended = Event::new()?;
        Ok(Stream { pipe, output: None, is_server, ended, read_limit, write_limit })
    }

    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.read_limit.store(millis(limit), Ordering::Relaxed);
        Ok(())
    }

    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.write_limit.store(millis(limit), Ordering::Relaxed);
        Ok(())
    }

    fn run(
        &self,
        (pipe, limit): (&OwnedHandle, &AtomicU64),
        begin: impl FnOnce(HANDLE, *mut OVERLAPPED) -> BOOL,
    ) -> io::Result<usize> {
        let ended = self.ended.as_raw_handle();
        if is_set(ended) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let limit = limit.load(Ordering::Relaxed);
        let limit = (limit != FOR_EVER).then(|| Duration::from_millis(limit));
        let mut call = OverlappedCall::new()?;
        let done = call.begin(pipe.as_raw_handle(), |pipe, _, state| begin(pipe, state));
        done.and_then(|()| {
            wait_any(&[call.event.as_raw_handle(), ended], limit)?;
            call.end()
        })
        .map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> io::Error {
        let is_cancelled = error.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32);
        if is_cancelled && !is_set(self.ended.as_raw_handle()) {
            io::ErrorKind::TimedOut.into()
        } else if is_cancelled || is_end(&error) {
            io::ErrorKind::BrokenPipe.into()
        } else {
            error
        }
    }
}

fn millis(limit: Option<Duration>) -> u64 {
    limit.map_or(FOR_EVER, |limit| limit.as_micros().div_ceil(1000) as u64)
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
        let from = (self.output.as_ref().unwrap_or(&self.pipe), &self.read_limit);
        let read = self
            .run(from, |pipe, state| unsafe { ReadFile(pipe, place, length, null_mut(), state) });
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
        self.run((&self.pipe, &self.write_limit), |pipe, state| unsafe {
            WriteFile(pipe, place, length, null_mut(), state)
        })
    }

    /// Written bytes are in the pipe, and reach the reader even after this end is closed.
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

pub fn pair() -> io::Result<(Stream, Stream)> {
    let name = random_name("pair");
    let server = instance(&name, true)?;
    Ok((connect(&name, Duration::ZERO)?, Stream::new(server, true)?))
}

pub fn start(program: &str, args: &[String]) -> io::Result<(Stream, Child)> {
    let (input, stdin) = one_way(Flow::ToThem)?;
    let (output, stdout) = one_way(Flow::ToUs)?;
    let mut apart = Command::new(program);
    apart.args(args).creation_flags(CREATE_NEW_PROCESS_GROUP);
    let child = apart.stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn()?;
    Ok((Stream { output: Some(output), ..Stream::new(input, true)? }, child))
}

pub fn hang_up(stream: &Stream) {
    stream.ended.set();
}

pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    let pipe = stream.pipe.as_raw_handle();
    if stream.is_server { client_of(pipe) } else { server_of(pipe) }
}

/// Returns the client of an open pipe, with the user of its token.
pub(crate) fn client_of(pipe: RawHandle) -> io::Result<Peer> {
    let mut pid = 0;
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetNamedPipeClientProcessId(pipe, &raw mut pid) })?;
    Ok(Peer { uid: user_of_process(&open_to_look(pid)?)?, pid: Some(pid) })
}

/// Returns the server of an open pipe, with the owner of the pipe.
pub(crate) fn server_of(pipe: RawHandle) -> io::Result<Peer> {
    let mut pid = 0;
    // SAFETY: as above.
    check(unsafe { GetNamedPipeServerProcessId(pipe, &raw mut pid) })?;
    Ok(Peer { uid: who_may(pipe, SE_KERNEL_OBJECT)?.owner, pid: Some(pid) })
}

pub fn listener_uid(_addr: SocketAddr) -> Option<UserId> {
    None
}

/// A pipe is in no directory.
pub fn check_place(_socket: &Path) -> Result<bool, DirError> {
    Ok(true)
}

/// No other process can take a name from its listener.
pub fn file_id(_path: &Path) -> Option<(u64, u64)> {
    Some((0, 0))
}

/// A name goes with its last pipe.
pub fn is_left(_path: &Path) -> bool {
    false
}

pub fn remove(_path: &Path) {}

pub fn touch(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Only checks that the name is free.
pub fn clear_stale_socket(path: &Path) -> Result<(), StaleError> {
    let failed = |source| StaleError::Io { path: path.to_owned(), source };
    match connect(path, Duration::from_millis(1)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::TimedOut => Err(failed(error)),
        Ok(_) | Err(_) => Err(StaleError::InUse { path: path.to_owned() }),
    }
}
