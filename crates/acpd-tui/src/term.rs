//! The modes of the terminal, and the way back from them.
//!
//! ```text
//!           enter                    restore: exit, panic, SIGTERM, SIGHUP, Ctrl-Z
//!  as it was ────▶ raw, alternate screen, bracketed paste ────▶ as it was
//! ```
//!
//! Whether the terminal is ours is global: a panic and a signal must find it from any thread, and a release build
//! aborts on a panic, so no destructor runs. [`restore`] is one write of all resets; whoever comes
//! first does it, and frames after it go nowhere.

use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use nix::errno::Errno;
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::write;

/// Whether the terminal is ours.
static IS_OURS: Mutex<bool> = Mutex::new(false);

/// Whether another program has it.
static IS_LENT: AtomicBool = AtomicBool::new(false);

/// Alternate screen, empty; bracketed paste; focus reports; unambiguous keys, where the terminal can.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[?25l";
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
    let mut is_ours = lock();
    // Whoever has stopped us may have changed the modes that crossterm believes are set.
    disable_raw_mode()?;
    enable_raw_mode()?;
    if !*is_ours {
        *is_ours = true;
        write_all(ENTER)?;
    }
    Ok(())
}

/// Gives the terminal to another program, as it was, and takes it back when that has ended.
pub(crate) fn lend<T>(program: impl FnOnce() -> T) -> io::Result<T> {
    IS_LENT.store(true, Ordering::Relaxed);
    restore();
    let result = program();
    IS_LENT.store(false, Ordering::Relaxed);
    enter()?;
    Ok(result)
}

/// Whether another program has the terminal.
pub(crate) fn is_lent() -> bool {
    IS_LENT.load(Ordering::Relaxed)
}

/// Shows a frame, unless the terminal is no longer ours.
pub(crate) fn show(frame: &[u8]) -> io::Result<()> {
    let is_ours = lock();
    if *is_ours { write_all(&[BEGIN_FRAME, frame, END_FRAME].concat()) } else { Ok(()) }
}

/// Puts a text into the clipboard of the person's terminal, wherever that is.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let is_ours = lock();
    let text = BASE64_STANDARD.encode(text);
    if *is_ours { write_all(format!("\x1b]52;c;{text}\x07").as_bytes()) } else { Ok(()) }
}

/// Puts the terminal back as it was. Does nothing the second time.
pub(crate) fn restore() {
    // Whoever writes may be stuck in a terminal that takes nothing, or be the thread that panics.
    let mut tries = 0..TRIES;
    let was_ours = loop {
        match IS_OURS.try_lock() {
            Ok(mut is_ours) => break mem::take(&mut *is_ours),
            Err(TryLockError::Poisoned(is_ours)) => break mem::take(&mut *is_ours.into_inner()),
            Err(TryLockError::WouldBlock) if tries.next().is_none() => break true,
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    };
    if !was_ours {
        return;
    }
    // A terminal that is gone needs nothing.
    let _ = write_all(LEAVE);
    let _ = disable_raw_mode();
    // What was typed for us is not for the shell; nor are answers of the terminal that come late.
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

fn lock() -> MutexGuard<'static, bool> {
    IS_OURS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Past the standard library's buffer and its lock, which another thread may hold.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    while !bytes.is_empty() {
        match write(stdout.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
