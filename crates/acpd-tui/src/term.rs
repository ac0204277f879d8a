//! The modes of the terminal, and their reset.
//!
//! ```text
//!           enter                    restore: exit, panic, SIGTERM, SIGHUP, Ctrl-Z
//!  as it was ────▶ raw, alternate screen, bracketed paste ────▶ as it was
//!                    │ lend            ▲
//!                    ▼                 │ it has ended
//!                 as it was, for another program
//! ```
//!
//! The state is global: a panic or a signal must find it from any thread. A release build aborts on
//! a panic, so no destructor runs. [`restore`] writes all resets once; later frames are dropped.

use std::io;
use std::mem;
use std::panic;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use acpd_sys::terminal::{self, forget_typed, write_all};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use crossterm::terminal::enable_raw_mode;

static MODES: Mutex<Modes> = Mutex::new(Modes { holder: Holder::Nobody, has_mouse: false });
/// The modes before the screens. Nothing blocks while this is locked, so every exit can lock it.
static BEFORE: Mutex<Option<terminal::Modes>> = Mutex::new(None);

/// State of the terminal that frames rely on and [`restore`] undoes.
struct Modes {
    holder: Holder,
    has_mouse: bool,
}

impl Modes {
    /// Writes to a terminal that has the modes of the screens.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if self.holder == Holder::Us { write_all(bytes) } else { Ok(()) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// The terminal has its original modes.
    Nobody,
    Us,
    /// Another program. The terminal has its original modes.
    Other,
}

/// Alternate screen, cleared; bracketed paste; focus reports; unambiguous keys if possible.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[?25l";
/// Reports of wheel and clicks, with coordinates of any size.
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
/// Resets everything that frames and modes may have set.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[0m\x1b[<1u\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[0 q\x1b[?1049l";
/// Synchronized output; terminals without it ignore these.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
const END_FRAME: &[u8] = b"\x1b[?2026l";
/// Attempts to lock a terminal that is being written to, and the pause between them.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// The modes of a full screen; dropping this restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// A panic also restores the terminal.
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

/// Can be called again after [`restore`] and SIGSTOP.
pub(crate) fn enter() -> io::Result<()> {
    let mut modes = lock(&MODES);
    let found = terminal::raw()?;
    // crossterm reads Ctrl-J as Enter until it sets the mode itself; the mode is the same.
    enable_raw_mode()?;
    // The shell may have changed the modes while the process was stopped.
    lock(&BEFORE).get_or_insert(found);
    if mem::replace(&mut modes.holder, Holder::Us) != Holder::Us {
        write_all(ENTER)?;
        if modes.has_mouse {
            terminal::report_mouse(true)?;
            write_all(MOUSE)?;
        }
    }
    Ok(())
}

pub(crate) fn lend<T>(program: impl FnOnce() -> T) -> io::Result<T> {
    give(Holder::Other);
    let result = program();
    enter()?;
    Ok(result)
}

pub(crate) fn is_lent() -> bool {
    // A held lock means that a frame is being written.
    MODES.try_lock().is_ok_and(|modes| modes.holder == Holder::Other)
}

/// Makes the terminal announce pending keys again.
pub(crate) fn announce_again() {
    let modes = lock(&MODES);
    if modes.holder == Holder::Us {
        terminal::announce_keys();
    }
}

pub(crate) fn capture_mouse(is_on: bool) -> io::Result<()> {
    let mut modes = lock(&MODES);
    modes.has_mouse = is_on;
    if modes.holder == Holder::Us {
        terminal::report_mouse(is_on)?;
    }
    modes.write(if is_on { MOUSE } else { NO_MOUSE })
}

/// Drops the frame after [`restore`].
pub(crate) fn show(frame: &[u8]) -> io::Result<()> {
    lock(&MODES).write(&[BEGIN_FRAME, frame, END_FRAME].concat())
}

/// Copies a text to the terminal's clipboard (OSC 52).
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let text = BASE64_STANDARD.encode(text);
    lock(&MODES).write(format!("\x1b]52;c;{text}\x07").as_bytes())
}

/// Does nothing the second time.
pub(crate) fn restore() {
    give(Holder::Nobody);
}

fn give(next: Holder) {
    // The terminal may block the lock's holder, or the panicking thread may hold it.
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
    // Errors of a closed terminal do not matter.
    let _ = write_all(LEAVE);
    if let Some(before) = lock(&BEFORE).take() {
        before.restore();
    }
    // The shell must not get the screens' keys and late answers of the terminal.
    forget_typed();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::env;
    use std::process::Command;

    use acpd_test::harness::Screen as Terminal;

    use super::*;

    const PANICS: &str = "ACPD_TUI_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_its_words_can_be_read() {
        if env::var_os(PANICS).is_some() {
            // Release builds abort, so that only the hook runs.
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
