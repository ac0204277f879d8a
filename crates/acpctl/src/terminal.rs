//! Single keys from the terminal.
//!
//! While a question is open, the terminal hands over each key at once and does not echo it; Ctrl-C
//! stays a signal. Keys typed before the question are discarded: they cannot answer it.

use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::sys::termios::{FlushArg, LocalFlags, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use nix::unistd::ttyname;

/// How the terminal was before the open question. Global, because a signal ends the process from
/// another thread.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal in single-key mode; dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct KeyMode(());

impl KeyMode {
    /// Switches the terminal on stdin.
    pub(crate) fn enter() -> io::Result<KeyMode> {
        let before = tcgetattr(io::stdin())?;
        let mut keys = before.clone();
        keys.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &keys)?;
        Ok(KeyMode(()))
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was, if a question is open.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
    }
}

/// What stands for the end of what is typed: Ctrl-D, which a terminal does not hand over as a byte.
pub(crate) const END: u8 = 4;

/// Throws away what was typed and not read yet.
pub(crate) fn forget_typed() {
    // What is no terminal has nothing to forget.
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

/// The name of the terminal on stdin, if it is one: `pts/3`.
pub(crate) fn name() -> Option<String> {
    let path = ttyname(io::stdin()).ok()?;
    Some(path.strip_prefix("/dev/").unwrap_or(&path).to_str()?.to_owned())
}

/// Hands every key to `take`, and at last [`END`], from a thread that stays until the process ends or `take` is false.
pub(crate) fn read_keys(take: impl Fn(u8) -> bool + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        let mut key = [0];
        while matches!(io::stdin().lock().read(&mut key), Ok(1)) {
            if !take(key[0]) {
                return;
            }
        }
        take(END);
    })?;
    Ok(())
}
