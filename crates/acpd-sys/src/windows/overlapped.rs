//! Calls of the system that go on while we do something else.
//!
//! ```text
//!          begin ──▶ under way ──▶ over: result tells what came of it
//! idle ◀──────────────────────────────┘
//! ```

use std::io;
use std::os::windows::io::{AsRawHandle as _, RawHandle};

use windows_sys::Win32::Foundation::{ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, GetLastError, HANDLE};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::core::BOOL;

use crate::handle::{Event, check};

/// A call, the bytes that it reads or writes, and the event that is set when it is over.
///
/// Its owner keeps the handle that it was begun on open for as long as this lives: a field before that of the handle.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) bytes: Vec<u8>,
    pub(crate) event: Event,
    /// Where it stays while the system writes to it.
    state: Box<State>,
    /// The handle of the call, as long as it is under way or its result was not asked for.
    on: Option<RawHandle>,
}

struct State(OVERLAPPED);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

// SAFETY: what the pointers and handles in it stand for belongs to the process and not to a thread, and who has it to
// change it has it alone.
unsafe impl Send for Call {}

impl Call {
    pub(crate) fn new() -> io::Result<Call> {
        let state = Box::new(State(OVERLAPPED::default()));
        Ok(Call { bytes: Vec::new(), event: Event::new()?, state, on: None })
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.on.is_some()
    }

    /// Begins a call that is not under way. `call` is lent the bytes, which stay where they are until it is over.
    pub(crate) fn begin(
        &mut self,
        on: RawHandle,
        call: impl FnOnce(HANDLE, &mut [u8], *mut OVERLAPPED) -> BOOL,
    ) -> io::Result<()> {
        self.event.reset();
        self.state.0 = OVERLAPPED { hEvent: self.event.as_raw_handle(), ..OVERLAPPED::default() };
        // SAFETY: it only tells what the call before has left.
        if call(on, &mut self.bytes, &raw mut self.state.0) == 0
            && unsafe { GetLastError() } != ERROR_IO_PENDING
        {
            return Err(io::Error::last_os_error());
        }
        self.on = Some(on);
        Ok(())
    }

    /// Returns the result of the call, once: how many bytes; `None` while it is under way, or when none is.
    pub(crate) fn result(&mut self) -> io::Result<Option<usize>> {
        let Some(on) = self.on else { return Ok(None) };
        let mut count = 0;
        // SAFETY: the handle is open, as the owner of this keeps it; the state is that of the call.
        let told =
            check(unsafe { GetOverlappedResult(on, &raw const self.state.0, &raw mut count, 0) });
        match told {
            Err(error) if error.raw_os_error() == Some(ERROR_IO_INCOMPLETE as i32) => Ok(None),
            told => {
                self.on = None;
                told.map(|()| Some(count as usize))
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(on) = self.on else { return };
        let mut count = 0;
        // SAFETY: as above. It waits, so that nothing is written to the state or the bytes after it.
        unsafe {
            CancelIoEx(on, &raw const self.state.0);
            GetOverlappedResult(on, &raw const self.state.0, &raw mut count, 1);
        }
    }
}
