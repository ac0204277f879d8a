use std::io;
use std::os::windows::io::RawHandle;
use std::ptr;

use windows_sys::Win32::Globalization::CP_UTF8;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType, WriteFile,
};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_EXTENDED_FLAGS, ENABLE_LINE_INPUT, ENABLE_MOUSE_INPUT,
    ENABLE_PROCESSED_INPUT, ENABLE_PROCESSED_OUTPUT, ENABLE_QUICK_EDIT_MODE,
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, ENABLE_WINDOW_INPUT, FlushConsoleInputBuffer, GetConsoleCP,
    GetConsoleMode, GetConsoleOutputCP, GetStdHandle, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
    SetConsoleCP, SetConsoleMode, SetConsoleOutputCP,
};

use crate::handle::{check, wait_any};

pub const CAN_SUSPEND: bool = false;
pub const HAS_BARE_KEYS: bool = true;

/// Bytes that older consoles take at once.
const AT_ONCE: usize = 8192;

/// Modes of a console before a change, and the encoding for a full screen.
#[derive(Debug)]
pub struct Modes {
    input: CONSOLE_MODE,
    output: Option<(CONSOLE_MODE, Utf8)>,
}

impl Modes {
    pub fn restore(&self) {
        let _ = set(STD_INPUT_HANDLE, self.input);
        if let Some((output, encoding)) = &self.output {
            let _ = set(STD_OUTPUT_HANDLE, *output);
            encoding.restore();
        }
    }
}

pub fn single_keys() -> io::Result<Modes> {
    let input = mode(STD_INPUT_HANDLE)?;
    set(STD_INPUT_HANDLE, input & !(ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT))?;
    forget_typed();
    Ok(Modes { input, output: None })
}

pub fn raw() -> io::Result<Modes> {
    let (input, output) = (mode(STD_INPUT_HANDLE)?, mode(STD_OUTPUT_HANDLE)?);
    let before = Modes { input, output: Some((output, Utf8::set())) };
    // Keys arrive raw, Ctrl-C too, with changes of the size; not the mouse yet.
    let cooked =
        ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT | ENABLE_PROCESSED_INPUT | ENABLE_MOUSE_INPUT;
    let raw = input & !cooked | ENABLE_WINDOW_INPUT;
    let escapes = output | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
    set(STD_INPUT_HANDLE, raw)
        .and_then(|()| set(STD_OUTPUT_HANDLE, escapes))
        .inspect_err(|_| before.restore())?;
    Ok(before)
}

pub fn forget_typed() {
    // SAFETY: the handle is that of stdin, or none, which is refused.
    unsafe { FlushConsoleInputBuffer(standard(STD_INPUT_HANDLE)) };
}

/// Otherwise the console selects text with the mouse.
pub fn report_mouse(is_on: bool) -> io::Result<()> {
    let now = mode(STD_INPUT_HANDLE)?;
    set(
        STD_INPUT_HANDLE,
        if is_on {
            now & !ENABLE_QUICK_EDIT_MODE | ENABLE_EXTENDED_FLAGS | ENABLE_MOUSE_INPUT
        } else {
            (now | ENABLE_EXTENDED_FLAGS | ENABLE_QUICK_EDIT_MODE) & !ENABLE_MOUSE_INPUT
        },
    )
}

pub fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let next = at_once(bytes);
        let mut count = 0;
        // SAFETY: the handle is that of stdout, or none, which is refused; the bytes and the place are ours.
        check(unsafe {
            let (stdout, length) = (standard(STD_OUTPUT_HANDLE), next.len() as u32);
            WriteFile(stdout, next.as_ptr(), length, &raw mut count, ptr::null_mut())
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count as usize..];
    }
    Ok(())
}

/// Returns the part that a console takes at once, without a cut character at the end.
fn at_once(text: &[u8]) -> &[u8] {
    let most = AT_ONCE.min(text.len());
    let begins = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    // Other bytes than UTF-8 are written as they are.
    &text[..(most.saturating_sub(3)..=most).rev().find(begins).unwrap_or(most)]
}

pub fn wait() -> io::Result<()> {
    wait_any(&[standard(STD_INPUT_HANDLE)], None).map(drop)
}

/// Consoles announce keys as long as there are some.
pub fn announce_keys() {}

pub fn suspend() {}

fn standard(which: u32) -> RawHandle {
    // SAFETY: it only returns what there is.
    unsafe { GetStdHandle(which) }
}

fn mode(which: u32) -> io::Result<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the handle is the process's own, or none, which is refused; the place is ours.
    check(unsafe { GetConsoleMode(standard(which), &raw mut mode) })?;
    Ok(mode)
}

fn set(which: u32, mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { SetConsoleMode(standard(which), mode) })
}

/// Consoles have no names.
pub fn name() -> Option<String> {
    None
}

pub fn input_is_fed() -> bool {
    // SAFETY: as above.
    let kind = unsafe { GetFileType(standard(STD_INPUT_HANDLE)) };
    kind == FILE_TYPE_PIPE || kind == FILE_TYPE_DISK
}

pub fn can_show_full_screen() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Consoles do, with the encoding set.
pub fn has_unicode() -> bool {
    true
}

#[derive(Debug)]
pub struct Utf8 {
    input: u32,
    output: u32,
}

impl Utf8 {
    pub fn set() -> Utf8 {
        // SAFETY: it takes and returns numbers. Without a console there is nothing to set, which is no error.
        unsafe {
            let before = Utf8 { input: GetConsoleCP(), output: GetConsoleOutputCP() };
            SetConsoleCP(CP_UTF8);
            SetConsoleOutputCP(CP_UTF8);
            before
        }
    }

    fn restore(&self) {
        // SAFETY: as above.
        unsafe {
            SetConsoleCP(self.input);
            SetConsoleOutputCP(self.output);
        }
    }
}

impl Drop for Utf8 {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_written_in_two_parts() {
        for character in ["a", "ö", "語", "🙂"] {
            for before in 0..4 {
                let text = "x".repeat(before) + &character.repeat(AT_ONCE);
                let mut rest = text.as_bytes();
                while !rest.is_empty() {
                    let part = at_once(rest);
                    assert!(part.len() <= AT_ONCE && str::from_utf8(part).is_ok(), "{character}");
                    rest = &rest[part.len()..];
                }
            }
        }
        assert_eq!(at_once(&[0x80; AT_ONCE + 1]).len(), AT_ONCE, "no text");
    }
}
