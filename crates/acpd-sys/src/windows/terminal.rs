//! The console on stdin.

use std::io;

use windows_sys::Win32::Globalization::CP_UTF8;
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, FlushConsoleInputBuffer, GetConsoleCP,
    GetConsoleMode, GetConsoleOutputCP, GetStdHandle, STD_INPUT_HANDLE, SetConsoleCP,
    SetConsoleMode, SetConsoleOutputCP,
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

/// Returns whether the console can show a full screen: all can, unless `TERM` is `dumb`.
pub fn is_able() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns whether the console shows more than ASCII. It does, in the right encoding.
pub fn is_unicode() -> bool {
    true
}

/// The encoding of what programs write to the console and read from it, for as long as it is UTF-8.
#[derive(Debug)]
pub struct Utf8 {
    input: u32,
    output: u32,
}

impl Utf8 {
    /// From now on it is.
    pub fn begin() -> Utf8 {
        // SAFETY: it takes and returns numbers. Without a console there is nothing to set, which is no harm.
        unsafe {
            let before = Utf8 { input: GetConsoleCP(), output: GetConsoleOutputCP() };
            SetConsoleCP(CP_UTF8);
            SetConsoleOutputCP(CP_UTF8);
            before
        }
    }

    /// Restores the encodings from before.
    pub fn end(&self) {
        // SAFETY: as above.
        unsafe {
            SetConsoleCP(self.input);
            SetConsoleOutputCP(self.output);
        }
    }
}
