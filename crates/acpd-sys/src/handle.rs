//! Handles of Windows, events, and waits for several of them.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle as _, OwnedHandle, RawHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE, WAIT_FAILED, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    CreateEventW, INFINITE, OpenProcess, PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SYNCHRONIZE, ResetEvent, SetEvent, WaitForMultipleObjects,
};
use windows_sys::core::BOOL;

/// Returns the last error if the call failed. Nothing may be called in between.
pub(crate) fn check(worked: BOOL) -> io::Result<()> {
    if worked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over a handle from the call that made it. Both values that mean a failure are errors.
pub(crate) fn owned(made: HANDLE) -> io::Result<OwnedHandle> {
    if made.is_null() || made == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made it for its caller, and it is none of the two values above.
    Ok(unsafe { OwnedHandle::from_raw_handle(made) })
}

pub(crate) fn open_process(pid: u32, access: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: it only returns a handle.
    owned(unsafe { OpenProcess(access, 0, pid) })
}

pub(crate) fn open_to_look(pid: u32) -> io::Result<OwnedHandle> {
    open_process(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)
}

/// A flag that one thread sets and others wait for. It stays set until it is reset.
#[derive(Debug)]
pub(crate) struct Event(OwnedHandle);

impl Event {
    pub(crate) fn new() -> io::Result<Event> {
        // SAFETY: no attributes and no name are given; it only returns a handle.
        Ok(Event(owned(unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) })?))
    }

    pub(crate) fn set(&self) {
        // SAFETY: the handle is open. It fails for no event that may be set.
        unsafe { SetEvent(self.0.as_raw_handle()) };
    }

    pub(crate) fn reset(&self) {
        // SAFETY: as above.
        unsafe { ResetEvent(self.0.as_raw_handle()) };
    }
}

impl AsRawHandle for Event {
    fn as_raw_handle(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

pub(crate) fn is_set(handle: RawHandle) -> bool {
    matches!(wait_any(&[handle], Some(Duration::ZERO)), Ok(Some(_)))
}

/// Waits until a handle is set or has ended. Returns its index, or `None` after the limit.
pub(crate) fn wait_any(
    handles: &[RawHandle],
    limit: Option<Duration>,
) -> io::Result<Option<usize>> {
    // Rounded up, so that the last wait is not a busy one; the largest number means no limit.
    let millis = limit.map_or(INFINITE, |limit| {
        limit.as_micros().div_ceil(1000).min(u128::from(INFINITE - 1)) as u32
    });
    // SAFETY: the handles are open as long as their owners exist, and fewer than 64.
    let result =
        unsafe { WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), 0, millis) };
    match result {
        WAIT_TIMEOUT => Ok(None),
        WAIT_FAILED => Err(io::Error::last_os_error()),
        which => Ok(Some(which as usize)),
    }
}
