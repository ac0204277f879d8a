//! One process of ours tells another that something has changed which it knows how to look up: an event that has the
//! process's number in its name.

use std::io;
use std::os::windows::io::AsRawHandle as _;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, GetLastError};
use windows_sys::Win32::System::Threading::{
    CreateEventW, EVENT_MODIFY_STATE, OpenEventW, SetEvent,
};

use crate::handle::{owned, wait_any};
use crate::os::PrivateTo;

/// Takes nudges from now on, and waits for each. Only this user can give them. One process does it once.
pub fn nudges() -> io::Result<impl Iterator<Item = ()> + Send + use<>> {
    let private = PrivateTo::user()?;
    let name = name(std::process::id());
    // SAFETY: the name ends with a zero, and the attributes live as long as the call. One wait takes one nudge.
    let event = owned(unsafe { CreateEventW(&private.attributes(), 0, 0, name.as_ptr()) })?;
    // SAFETY: it only tells what the call before has left.
    if unsafe { GetLastError() } == ERROR_ALREADY_EXISTS {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(std::iter::from_fn(move || {
        wait_any(&[event.as_raw_handle()], None).ok().flatten().map(drop)
    }))
}

/// Nudges this process, if it takes that.
pub fn nudge(pid: u32) {
    // SAFETY: the name ends with a zero; it only returns a handle.
    let event = owned(unsafe { OpenEventW(EVENT_MODIFY_STATE, 0, name(pid).as_ptr()) });
    // One that has ended needs no news.
    if let Ok(event) = event {
        // SAFETY: the handle is open.
        unsafe { SetEvent(event.as_raw_handle()) };
    }
}

/// A name in the namespace of the login, which other users cannot take.
fn name(pid: u32) -> Vec<u16> {
    format!("Local\\acpd-nudge-{pid}\0").encode_utf16().collect()
}
