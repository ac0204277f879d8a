//! The modes of the terminal, and the way back from them.
//!
//! ```text
//!           enter                    restore: exit, panic, SIGTERM, SIGHUP, Ctrl-Z
//!  as it was ────▶ raw, alternate screen, bracketed paste ────▶ as it was
//!                    │ lend            ▲
//!                    ▼                 │ it has ended
//!                 as it was, for another program
//! ```
//!
//! Who has it is global: a panic and a signal must find it from any thread, and a release build
//! aborts on a panic, so no destructor runs. [`restore`] is one write of all resets; whoever comes
//! first does it, and frames after it go nowhere.

use std::io;
use std::mem;
use std::panic;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use acpd_sys::screen::{self, Before, write_all};
use acpd_sys::terminal::forget_typed;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use crossterm::terminal::enable_raw_mode;

/// The modes of the terminal.
static MODES: Mutex<Modes> = Mutex::new(Modes { holder: Holder::Nobody, has_mouse: false });
/// How the terminal was. Nobody writes to it while this is locked, so whoever must leave gets hold of it.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// What a frame can rely on, and the way back must undo.
struct Modes {
    holder: Holder,
    /// The mouse is ours whenever the terminal is.
    has_mouse: bool,
}

/// Who has the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// It is as it was.
    Nobody,
    /// It is in our modes.
    Us,
    /// It is as it was, and lent to another program.
    Other,
}

/// Alternate screen, empty; bracketed paste; focus reports; unambiguous keys, where the terminal can.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[?25l";
/// The wheel and clicks are reported, with coordinates of any size.
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
/// Everything that any of our frames and modes may have left behind; harmless where nothing was.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[0m\x1b[<1u\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[0 q\x1b[?1049l";
/// Around each frame: a terminal that knows this shows the frame at once, others ignore it.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";
/// How often, and how long apart, somebody who must leave tries to get hold of a terminal that is written to.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// The terminal in the modes of a full screen; dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// Takes the terminal over, from now on also in a panic.
    pub(crate) fn take() -> io::Result<Screen> {
        let next = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            next(panic);
        }));
        let screen = Screen(());
        enter()?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Enters the modes; also after [`restore`], and when the process was stopped without it.
pub(crate) fn enter() -> io::Result<()> {
    let mut modes = lock();
    let found = screen::take()?;
    // crossterm reads Ctrl-J as Enter until it has set the mode itself; the mode is the same.
    enable_raw_mode()?;
    // Whoever has stopped us may have changed them, which is not how they were.
    before().get_or_insert(found);
    if mem::replace(&mut modes.holder, Holder::Us) != Holder::Us {
        write_all(ENTER)?;
        if modes.has_mouse {
            screen::report_mouse(true)?;
            write_all(MOUSE)?;
        }
    }
    Ok(())
}

/// Gives the terminal to another program, as it was, and takes it back when that has ended.
pub(crate) fn lend<T>(program: impl FnOnce() -> T) -> io::Result<T> {
    give(Holder::Other);
    let result = program();
    enter()?;
    Ok(result)
}

/// Whether another program has the terminal.
pub(crate) fn is_lent() -> bool {
    // Whoever writes to it now, perhaps for a long time, is no other program.
    MODES.try_lock().is_ok_and(|modes| modes.holder == Holder::Other)
}

/// Has the terminal tell once more that there are keys.
pub(crate) fn tell_again() {
    let modes = lock();
    if modes.holder == Holder::Us {
        screen::tell_again();
    }
}

/// Takes the mouse from the terminal, or gives it back.
pub(crate) fn capture_mouse(is_on: bool) -> io::Result<()> {
    let mut modes = lock();
    modes.has_mouse = is_on;
    if modes.holder == Holder::Us {
        screen::report_mouse(is_on)?;
        write_all(if is_on { MOUSE } else { NO_MOUSE })
    } else {
        Ok(())
    }
}

/// Shows a frame, unless the terminal is no longer ours.
pub(crate) fn show(frame: &[u8]) -> io::Result<()> {
    let modes = lock();
    if modes.holder == Holder::Us {
        write_all(&[BEGIN_FRAME, frame, END_FRAME].concat())
    } else {
        Ok(())
    }
}

/// Puts a text into the clipboard of the person's terminal, wherever that is.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let modes = lock();
    let text = BASE64_STANDARD.encode(text);
    if modes.holder == Holder::Us {
        write_all(format!("\x1b]52;c;{text}\x07").as_bytes())
    } else {
        Ok(())
    }
}

/// Puts the terminal back as it was. Does nothing the second time.
pub(crate) fn restore() {
    give(Holder::Nobody);
}

fn give(next: Holder) {
    // Whoever writes may be stuck in a terminal that takes nothing, or be the thread that panics.
    let mut tries = 0..TRIES;
    let holder = loop {
        match MODES.try_lock() {
            Ok(mut modes) => break mem::replace(&mut modes.holder, next),
            Err(TryLockError::Poisoned(modes)) => {
                break mem::replace(&mut modes.into_inner().holder, next);
            }
            Err(TryLockError::WouldBlock) if tries.next().is_none() => break Holder::Us,
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    };
    if holder != Holder::Us {
        return;
    }
    // A terminal that is gone needs nothing.
    let _ = write_all(LEAVE);
    if let Some(before) = before().take() {
        screen::give_back(&before);
    }
    // What was typed for us is not for the shell; nor are answers of the terminal that come late.
    forget_typed();
}

fn lock() -> MutexGuard<'static, Modes> {
    MODES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn before() -> MutexGuard<'static, Option<Before>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::env;
    use std::process::Command;

    use acpd_test::harness::Screen as Terminal;

    use super::*;

    /// Set for the process that panics.
    const PANICS: &str = "ACPD_TUI_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_its_words_can_be_read() {
        if env::var_os(PANICS).is_some() {
            // Release builds abort, so the hook has to do it alone.
            mem::forget(Screen::take().unwrap());
            capture_mouse(true).unwrap();
            show(b"on the screen").unwrap();
            panic!("a mistake in a screen");
        }
        let name = "term::tests::a_panic_leaves_the_terminal_as_it_was_and_its_words_can_be_read";
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(PANICS, "1").env("RUST_BACKTRACE", "0");
        let mut terminal = Terminal::start(command, (80, 24));
        assert!(!terminal.ends().success());
        terminal.writes("on the screen");
        terminal.sees("a mistake in a screen");
        terminal.gives_back();
        let written = terminal.written();
        for mode in ["1049", "1000", "1006", "1004", "2004"] {
            assert!(written.contains(&format!("\u{1b}[?{mode}h")), "{mode} in {written:?}");
            let last = written.rfind(&format!("\u{1b}[?{mode}"));
            assert_eq!(last, written.rfind(&format!("\u{1b}[?{mode}l")), "{mode} in {written:?}");
        }
        assert!(written.contains("\u{1b}[<1u"), "the keys are as before: {written:?}");
    }
}
