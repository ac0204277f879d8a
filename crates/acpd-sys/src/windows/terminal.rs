//! The console on stdin.

use std::io;

use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, FlushConsoleInputBuffer, GetConsoleMode,
    GetStdHandle, STD_INPUT_HANDLE, SetConsoleMode,
};

use crate::handle::check;

/// How a console was set.
#[derive(Debug, Clone)]
pub struct Modes(CONSOLE_MODE);

/// Has the console hand over each key at once, without an echo; Ctrl-C stays what it is. What was typed before is thrown
/// away. Returns how it was set.
pub fn single_keys() -> io::Result<Modes> {
    let mut before = 0;
    // SAFETY: the handle is that of stdin, or none, which is refused; the place is ours.
    unsafe {
        let stdin = GetStdHandle(STD_INPUT_HANDLE);
        check(GetConsoleMode(stdin, &raw mut before))?;
        check(SetConsoleMode(stdin, before & !(ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT)))?;
    }
    forget_typed();
    Ok(Modes(before))
}

/// Sets the console as it was.
pub fn restore(before: &Modes) {
    // SAFETY: as above. A console that is gone needs nothing.
    unsafe { SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), before.0) };
}

/// Throws away what was typed and not read yet.
pub fn forget_typed() {
    // SAFETY: as above. What is no console has nothing to forget.
    unsafe { FlushConsoleInputBuffer(GetStdHandle(STD_INPUT_HANDLE)) };
}

/// Consoles have no names.
pub fn name() -> Option<String> {
    None
}

/// Returns whether stdin is a pipe or a file.
pub fn input_is_fed() -> bool {
    // SAFETY: as above.
    let kind = unsafe { GetFileType(GetStdHandle(STD_INPUT_HANDLE)) };
    kind == FILE_TYPE_PIPE || kind == FILE_TYPE_DISK
}
