//! Single keys from the terminal.
//!
//! While a question is open, the terminal hands over each key at once and does not echo it; Ctrl-C
//! stays a signal. Keys typed before the question are discarded: they cannot answer it.

use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub(crate) use acpd_sys::terminal::name;
use acpd_sys::terminal::{self, Modes};

/// Modes of the terminal before the open question. Global, because a signal ends the process from
/// another thread.
static BEFORE: Mutex<Option<Modes>> = Mutex::new(None);

/// The terminal in single-key mode; dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct KeyMode(());

impl KeyMode {
    /// Switches the terminal on stdin.
    pub(crate) fn enter() -> io::Result<KeyMode> {
        // Locked meanwhile: a signal in between waits for what it has to restore.
        let mut saved = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        *saved = Some(terminal::single_keys()?);
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
        before.restore();
    }
}

/// End of the input: Ctrl-D, which a terminal does not pass as a byte.
pub(crate) const END: u8 = 4;

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
