//! Windows reports that something was read, not that it can be read. So an [`End`] that is waited
//! for reads ahead into its own bytes. Written bytes are copied, and count when the system has
//! taken them.

use std::fmt;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::windows::io::{
    AsRawHandle as _, AsRawSocket as _, OwnedHandle, OwnedSocket, RawHandle,
};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Instant;

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, ERROR_NO_DATA,
    ERROR_PIPE_NOT_CONNECTED, GetLastError, HANDLE,
};
use windows_sys::Win32::Networking::WinSock::{SD_SEND, shutdown};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::core::BOOL;

use super::Interest;
use crate::handle::{Event, check, is_set, wait_any};
use crate::named_pipe::{Flow, one_way};

/// Most bytes read ahead or on their way out: as much as a pipe holds.
const PIECE: usize = 64 << 10;

/// Returns whether the other end of a pipe is gone.
pub(crate) fn is_end(error: &io::Error) -> bool {
    let ends = [ERROR_BROKEN_PIPE, ERROR_NO_DATA, ERROR_PIPE_NOT_CONNECTED];
    error.raw_os_error().is_some_and(|code| ends.contains(&(code as u32)))
}

/// A call of the system in progress, with its bytes and the event that is set at its end.
///
/// The owner keeps the handle of the call open for as long as this lives: the handle is a later
/// field.
#[derive(Debug)]
pub(crate) struct OverlappedCall {
    bytes: Vec<u8>,
    pub(crate) event: Event,
    /// Boxed, because the system writes to it.
    state: Box<CallState>,
    /// The handle of a call whose result was not asked for yet.
    on: Option<RawHandle>,
}

struct CallState(OVERLAPPED);

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallState")
    }
}

// SAFETY: the pointers and handles in it belong to the process and not to a thread, and changes need `&mut`.
unsafe impl Send for OverlappedCall {}

impl OverlappedCall {
    pub(crate) fn new() -> io::Result<OverlappedCall> {
        let state = Box::new(CallState(OVERLAPPED::default()));
        Ok(OverlappedCall { bytes: Vec::new(), event: Event::new()?, state, on: None })
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.on.is_some()
    }

    /// Begins a call when none is in progress. `call` borrows the bytes, which stay in place until
    /// its end.
    pub(crate) fn begin(
        &mut self,
        on: RawHandle,
        call: impl FnOnce(HANDLE, &mut [u8], *mut OVERLAPPED) -> BOOL,
    ) -> io::Result<()> {
        self.event.reset();
        self.state.0 = OVERLAPPED { hEvent: self.event.as_raw_handle(), ..OVERLAPPED::default() };
        // SAFETY: it only returns the error of the call before.
        if call(on, &mut self.bytes, &raw mut self.state.0) == 0
            && unsafe { GetLastError() } != ERROR_IO_PENDING
        {
            return Err(io::Error::last_os_error());
        }
        self.on = Some(on);
        Ok(())
    }

    /// Returns the result of the call in bytes, once; `None` during a call, and without one.
    pub(crate) fn result(&mut self) -> io::Result<Option<usize>> {
        let Some(on) = self.on else { return Ok(None) };
        let mut count = 0;
        // SAFETY: the handle is open, as the owner keeps it; the state is that of the call.
        let result =
            check(unsafe { GetOverlappedResult(on, &raw const self.state.0, &raw mut count, 0) });
        match result {
            Err(error) if error.raw_os_error() == Some(ERROR_IO_INCOMPLETE as i32) => Ok(None),
            result => {
                self.on = None;
                result.map(|()| Some(count as usize))
            }
        }
    }

    /// Ends the call, which may be over already, and returns its result.
    pub(crate) fn end(&mut self) -> io::Result<usize> {
        let on = self.on.take().ok_or(io::ErrorKind::NotFound)?;
        let mut count = 0;
        // SAFETY: as above. It waits, so that nothing is written to the state or the bytes after it.
        check(unsafe {
            CancelIoEx(on, &raw const self.state.0);
            GetOverlappedResult(on, &raw const self.state.0, &raw mut count, 1)
        })?;
        Ok(count as usize)
    }
}

impl Drop for OverlappedCall {
    fn drop(&mut self) {
        if self.is_begun() {
            let _ = self.end();
        }
    }
}

pub trait Source {
    /// Begins the calls to wait for, and adds the handles that are set when they are over.
    fn begin(&mut self, interest: Interest, handles: &mut Vec<RawHandle>);
}

#[derive(Debug)]
pub struct End {
    read: OverlappedCall,
    write: OverlappedCall,
    /// Bytes of the read call that were read ahead.
    ahead: Range<usize>,
    // Closed after the calls have ended.
    open: Open,
}

#[derive(Debug)]
enum Open {
    Handle(OwnedHandle),
    Socket(Arc<OwnedSocket>),
}

impl Open {
    fn raw(&self) -> RawHandle {
        match self {
            Open::Handle(handle) => handle.as_raw_handle(),
            // A socket is a handle, and one that the standard library made takes such calls.
            Open::Socket(socket) => socket.as_raw_socket() as RawHandle,
        }
    }
}

impl End {
    /// The end must be made for overlapped calls, as the standard library makes those of a child's pipes.
    pub fn new(end: impl Into<OwnedHandle>) -> io::Result<End> {
        End::of(Open::Handle(end.into()))
    }

    pub fn halves(connection: impl Into<OwnedSocket>) -> io::Result<(End, End)> {
        let socket = Arc::new(connection.into());
        Ok((End::of(Open::Socket(Arc::clone(&socket)))?, End::of(Open::Socket(socket))?))
    }

    fn of(open: Open) -> io::Result<End> {
        Ok(End { read: OverlappedCall::new()?, write: OverlappedCall::new()?, ahead: 0..0, open })
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ahead.is_empty() {
            match self.begin_read().and_then(|()| self.read.result()) {
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                // In a pipe, zero bytes are an empty write.
                Ok(Some(0)) if matches!(self.open, Open::Socket(_)) => return Ok(0),
                Ok(Some(count)) => self.ahead = 0..count,
                Err(error) if is_end(&error) => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        let count = self.ahead.len().min(buffer.len());
        let start = self.ahead.start;
        buffer[..count].copy_from_slice(&self.read.bytes[start..start + count]);
        self.ahead.start += count;
        Ok(count)
    }

    fn begin_read(&mut self) -> io::Result<()> {
        if self.read.is_begun() || !self.ahead.is_empty() {
            return Ok(());
        }
        self.read.bytes.resize(PIECE, 0);
        self.read.begin(self.open.raw(), |handle, bytes, state| {
            let (place, length) = (bytes.as_mut_ptr(), bytes.len() as u32);
            // SAFETY: the handle is open; place and state are kept by the call until it is over.
            unsafe { ReadFile(handle, place, length, null_mut(), state) }
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.write.is_begun() {
            self.write.bytes.clear();
            self.write.bytes.extend_from_slice(&bytes[..bytes.len().min(PIECE)]);
            let begun = self.write.begin(self.open.raw(), |handle, bytes, state| {
                let (place, length) = (bytes.as_ptr(), bytes.len() as u32);
                // SAFETY: as above.
                unsafe { WriteFile(handle, place, length, null_mut(), state) }
            });
            begun.map_err(broken)?;
        }
        match self.write.result().map_err(broken)? {
            Some(count) => Ok(count),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub fn shut_down(&self) {
        if let Open::Socket(socket) = &self.open {
            // SAFETY: the socket is open. The other end may be gone.
            unsafe { shutdown(socket.as_raw_socket() as usize, SD_SEND) };
        }
    }

    pub fn until(&mut self, interest: Interest, deadline: Instant) -> io::Result<bool> {
        let mut handles = Vec::new();
        self.begin(interest, &mut handles);
        let left = deadline.saturating_duration_since(Instant::now());
        Ok(wait_any(&handles, Some(left))?.is_some())
    }
}

fn broken(error: io::Error) -> io::Error {
    if is_end(&error) { io::ErrorKind::BrokenPipe.into() } else { error }
}

impl Source for End {
    fn begin(&mut self, interest: Interest, handles: &mut Vec<RawHandle>) {
        if interest != Interest::Write {
            if self.begin_read().is_err() {
                // The next read returns the error.
                self.read.event.set();
            }
            handles.push(self.read.event.as_raw_handle());
        }
        if interest != Interest::Read {
            if !self.write.is_begun() {
                self.write.event.set();
            }
            handles.push(self.write.event.as_raw_handle());
        }
    }
}

pub fn pipe() -> io::Result<(End, File)> {
    let (ours, theirs) = one_way(Flow::ToUs)?;
    Ok((End::new(ours)?, theirs))
}

#[derive(Debug)]
pub struct Wait<'a, T> {
    handles: Vec<RawHandle>,
    names: Vec<T>,
    /// The handles belong to borrowed sources.
    sources: PhantomData<&'a mut ()>,
}

impl<'a, T: Copy + PartialEq> Wait<'a, T> {
    pub fn empty() -> Wait<'a, T> {
        Wait { handles: Vec::new(), names: Vec::new(), sources: PhantomData }
    }

    pub fn add(&mut self, source: &'a mut impl Source, interest: Interest, name: T) {
        source.begin(interest, &mut self.handles);
        self.names.resize(self.handles.len(), name);
    }

    pub fn until(self, deadline: Instant) -> Vec<T> {
        let left = deadline.saturating_duration_since(Instant::now());
        if !matches!(wait_any(&self.handles, Some(left)), Ok(Some(_))) {
            return Vec::new();
        }
        let found = self.handles.iter().zip(self.names).rev();
        let mut ready: Vec<T> =
            found.filter(|(handle, _)| is_set(**handle)).map(|(_, name)| name).collect();
        // Both directions of one end have one name.
        ready.dedup();
        ready
    }
}
