//! The console of a full screen: every key as it is, escapes and UTF-8 out.

use std::io;
use std::os::windows::io::RawHandle;
use std::ptr;

use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_EXTENDED_FLAGS, ENABLE_LINE_INPUT, ENABLE_MOUSE_INPUT,
    ENABLE_PROCESSED_INPUT, ENABLE_PROCESSED_OUTPUT, ENABLE_QUICK_EDIT_MODE,
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, ENABLE_WINDOW_INPUT, GetConsoleMode, GetStdHandle,
    STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
};

use crate::ask::Ask;
use crate::asked::asked;
use crate::handle::{check, wait_any};
use crate::terminal::Utf8;

pub use crate::told::Told;

/// `true` where the user can stop the program and continue it.
pub const CAN_SUSPEND: bool = false;

/// `true` where keys come as a keyboard has them: also when they are released, AltGr as Ctrl and Alt, and
/// pasted text as if it was typed.
pub const HAS_BARE_KEYS: bool = true;

/// The most bytes that older consoles take at once.
const AT_ONCE: usize = 8192;

/// How a console was before a full screen.
#[derive(Debug)]
pub struct Before {
    input: CONSOLE_MODE,
    output: CONSOLE_MODE,
    encoding: Utf8,
}

/// Takes the console on stdin and stdout. Returns how it was.
pub fn take() -> io::Result<Before> {
    let (input, output) = (mode(STD_INPUT_HANDLE)?, mode(STD_OUTPUT_HANDLE)?);
    let before = Before { input, output, encoding: Utf8::begin() };
    // Keys come as they are, Ctrl-C too, and changes of the size; the mouse is off until requested.
    let cooked =
        ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT | ENABLE_PROCESSED_INPUT | ENABLE_MOUSE_INPUT;
    let raw = input & !cooked | ENABLE_WINDOW_INPUT;
    let escapes = output | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
    let set = set(STD_INPUT_HANDLE, raw).and_then(|()| set(STD_OUTPUT_HANDLE, escapes));
    match set {
        Ok(()) => Ok(before),
        Err(error) => {
            give_back(&before);
            Err(error)
        }
    }
}

pub fn give_back(before: &Before) {
    // A console that is gone needs nothing.
    let _ = set(STD_INPUT_HANDLE, before.input);
    let _ = set(STD_OUTPUT_HANDLE, before.output);
    before.encoding.end();
}

/// Has the console report the mouse, beside the escapes that ask for that, in place of selecting text with it.
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

/// Writes past the standard library's buffer and its lock, which another thread may hold.
pub fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let next = at_once(bytes);
        let mut count = 0;
        // SAFETY: the handle is that of stdout, or none, which is refused; the bytes and the place are ours.
        check(unsafe {
            let stdout = GetStdHandle(STD_OUTPUT_HANDLE);
            let length = next.len() as u32;
            WriteFile(stdout, next.as_ptr(), length, &raw mut count, ptr::null_mut())
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count as usize..];
    }
    Ok(())
}

/// As much of a text as a console takes at once, without a part of a character at the end.
fn at_once(text: &[u8]) -> &[u8] {
    let most = AT_ONCE.min(text.len());
    let begins = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    // Text that is not UTF-8 is written as it is.
    &text[..(most.saturating_sub(3)..=most).rev().find(begins).unwrap_or(most)]
}

/// Waits until there is something to read, or perhaps is. It fails if the console is gone.
pub fn wait() -> io::Result<()> {
    wait_any(&[standard(STD_INPUT_HANDLE)], None).map(drop)
}

/// Consoles tell as long as there is something to read.
pub fn tell_again() {}

/// Does nothing: here no shell could continue a stopped program.
pub fn suspend() {}

/// Takes these from now on, and waits for each. Another size comes with the keys.
pub fn told() -> io::Result<impl Iterator<Item = Told> + Send + use<>> {
    Ok(asked(&Ask::ALL)?.map(Told::Asked))
}

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
