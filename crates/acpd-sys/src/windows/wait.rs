//! Waiting for several things at once, with a deadline; and ends of pipes and connections that never wait by themselves.
//!
//! Windows does not tell that something can be read, only that it was. So an [`End`] that is waited for reads ahead, into
//! bytes of its own; and what is written is copied, and counts when the system has taken it.

use std::fs::File;
use std::io;
use std::os::windows::io::{
    AsRawHandle as _, AsRawSocket as _, OwnedHandle, OwnedSocket, RawHandle,
};
use std::sync::Arc;
use std::time::Instant;

use windows_sys::Win32::Networking::WinSock::{SD_SEND, shutdown};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};

use crate::handle::{Event, is_set, wait_any};
use crate::overlapped::Call;
use crate::socket::{Flow, is_end, one_way};

/// The most that is read ahead or is on its way out, in bytes: as much as a pipe holds.
const PIECE: usize = 64 << 10;

/// The event to wait for at an [`End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That there is something to read, or will never be.
    Read,
    /// That there is room to write, or will never be.
    Write,
    Both,
}

/// Something that a [`Wait`] can wait for.
pub trait Source {
    /// Begins what is to be waited for, and adds the handles that are set when it is over.
    fn begin(&mut self, interest: Interest, handles: &mut Vec<RawHandle>);
}

/// An end of a pipe or a connection. It never waits: who would have to gets [`io::ErrorKind::WouldBlock`].
#[derive(Debug)]
pub struct End {
    read: Call,
    write: Call,
    /// Bytes that were read ahead: their range in the buffer of the call.
    ahead: std::ops::Range<usize>,
    // Behind the calls, which end before it is closed.
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
            // A socket is a handle, and one that the library made takes such calls.
            Open::Socket(socket) => socket.as_raw_socket() as RawHandle,
        }
    }
}

impl End {
    /// Our end of a child's pipe or of a named one: made for overlapped calls, as the library makes the former.
    pub fn new(end: impl Into<OwnedHandle>) -> io::Result<End> {
        End::of(Open::Handle(end.into()))
    }

    /// Both directions of a connection, one to read from and one to write to.
    pub fn halves(connection: impl Into<OwnedSocket>) -> io::Result<(End, End)> {
        let socket = Arc::new(connection.into());
        let half = |socket: &Arc<OwnedSocket>| End::of(Open::Socket(Arc::clone(socket)));
        Ok((half(&socket)?, half(&socket)?))
    }

    fn of(open: Open) -> io::Result<End> {
        Ok(End { read: Call::new()?, write: Call::new()?, ahead: 0..0, open })
    }

    /// Reads once; nothing is the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ahead.is_empty() {
            match self.begin_read().and_then(|()| self.read.result()) {
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                // For a pipe, it only means that the other end has written nothing.
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

    /// Begins to read, unless there is something already or soon.
    fn begin_read(&mut self) -> io::Result<()> {
        if self.read.is_begun() || !self.ahead.is_empty() {
            return Ok(());
        }
        self.read.bytes.resize(PIECE, 0);
        self.read.begin(self.open.raw(), |handle, bytes, state| {
            let (place, length) = (bytes.as_mut_ptr(), bytes.len() as u32);
            // SAFETY: the handle is open; place and state are kept by the call until it is over.
            unsafe { ReadFile(handle, place, length, std::ptr::null_mut(), state) }
        })
    }

    /// Writes once. Who gets [`io::ErrorKind::WouldBlock`] comes again with the same bytes, or with these and more behind
    /// them: some of them may be on their way, and count then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.write.is_begun() {
            self.write.bytes.clear();
            self.write.bytes.extend_from_slice(&bytes[..bytes.len().min(PIECE)]);
            let begun = self.write.begin(self.open.raw(), |handle, bytes, state| {
                let (place, length) = (bytes.as_ptr(), bytes.len() as u32);
                // SAFETY: as above.
                unsafe { WriteFile(handle, place, length, std::ptr::null_mut(), state) }
            });
            begun.map_err(broken)?;
        }
        match self.write.result().map_err(broken)? {
            Some(count) => Ok(count),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Tells the other end of a connection that nothing more is written. The other half goes on.
    pub fn shut_down(&self) {
        if let Open::Socket(socket) = &self.open {
            // SAFETY: the socket is open. One that is gone needs not be told.
            unsafe { shutdown(socket.as_raw_socket() as usize, SD_SEND) };
        }
    }

    /// Waits for this end alone. Returns whether it was ready before the deadline.
    pub fn until(&mut self, interest: Interest, deadline: Instant) -> io::Result<bool> {
        let mut handles = Vec::new();
        self.begin(interest, &mut handles);
        let left = deadline.saturating_duration_since(Instant::now());
        Ok(wait_any(&handles, Some(left))?.is_some())
    }
}

/// Turns the error of a reader that is gone into `BrokenPipe`.
fn broken(error: io::Error) -> io::Error {
    if is_end(&error) { io::ErrorKind::BrokenPipe.into() } else { error }
}

impl Source for End {
    fn begin(&mut self, interest: Interest, handles: &mut Vec<RawHandle>) {
        if interest != Interest::Write {
            if self.begin_read().is_err() {
                // The next read hears why.
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

/// A pipe for what a child writes: our end of it, and its own, which may be copied.
pub fn output_pipe() -> io::Result<(End, File)> {
    let (ours, theirs) = one_way(Flow::ToUs)?;
    Ok((End::new(ours)?, theirs))
}

/// Wakes a [`Wait`] when another thread rings it.
#[derive(Debug)]
pub struct Bell(Arc<Event>);

/// The remote end that rings a [`Bell`].
#[derive(Debug, Clone)]
pub struct Rope(Arc<Event>);

impl Bell {
    pub fn new() -> io::Result<(Bell, Rope)> {
        let event = Arc::new(Event::new()?);
        Ok((Bell(Arc::clone(&event)), Rope(event)))
    }

    /// Lets it be silent, until it is rung again.
    pub fn silence(&mut self) {
        self.0.reset();
    }
}

impl Rope {
    /// Rings. A bell that rings already goes on.
    pub fn pull(&self) {
        self.0.set();
    }
}

impl Source for Bell {
    fn begin(&mut self, _interest: Interest, handles: &mut Vec<RawHandle>) {
        handles.push(self.0.as_raw_handle());
    }
}

/// A set of sources to wait for, each with its owner's name for it.
#[derive(Debug)]
pub struct Wait<'a, T> {
    handles: Vec<RawHandle>,
    what: Vec<T>,
    /// The handles belong to what was lent to us.
    lent: std::marker::PhantomData<&'a mut ()>,
}

impl<'a, T: Copy + PartialEq> Wait<'a, T> {
    /// Makes a wait for up to `count` sources.
    pub fn for_up_to(count: usize) -> Wait<'a, T> {
        let (handles, what) = (Vec::with_capacity(2 * count), Vec::with_capacity(2 * count));
        Wait { handles, what, lent: std::marker::PhantomData }
    }

    pub fn add(&mut self, source: &'a mut impl Source, interest: Interest, what: T) {
        source.begin(interest, &mut self.handles);
        self.what.resize(self.handles.len(), what);
    }

    /// Waits until something is ready or the deadline is there: what is ready, the last added first. It may be nothing also
    /// before the deadline.
    pub fn until(self, deadline: Instant) -> Vec<T> {
        let left = deadline.saturating_duration_since(Instant::now());
        if !matches!(wait_any(&self.handles, Some(left)), Ok(Some(_))) {
            return Vec::new();
        }
        let found = self.handles.iter().zip(self.what).rev();
        let mut ready: Vec<T> =
            found.filter(|(handle, _)| is_set(**handle)).map(|(_, what)| what).collect();
        // Both directions of one end are one thing.
        ready.dedup();
        ready
    }
}
