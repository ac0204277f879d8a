//! Keys and signals from the terminal.
//!
//! The first Ctrl-C is an event, the second one ends the process at once; Ctrl-\ is an event; before SIGTERM ends the
//! process, a last line can be written.
//!
//! While a question is open, the terminal hands over each key at once and does not echo it; Ctrl-C
//! stays a signal. Keys typed before the question are discarded: they cannot answer it.

use std::io::{self, Read as _};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use acpd_api::ExitCode;
use acpd_sys::signals::{Signal, end_by, watch};
pub(crate) use acpd_sys::terminal::name;
use acpd_sys::terminal::{self, Modes};

use crate::text::Text;
use crate::ui;

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

/// Last line to print when a hang-up or a request to end leaves a turn behind.
static AT_END: Mutex<Option<Text>> = Mutex::new(None);

/// Says this before SIGTERM or SIGHUP ends the process.
pub(crate) fn say_at_end(line: Option<Text>) {
    *AT_END.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// A key that is a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalKey {
    Interrupt,
    Detach,
}

/// Calls `take` at the first Ctrl-C and at each Ctrl-\, from a thread. A second Ctrl-C, a hang-up or a request
/// to end leaves the process with the usual code and a usable terminal, at once after `last_words`.
pub(crate) fn on_keys(
    take: impl Fn(TerminalKey) + Send + Sync + 'static,
    last_words: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let received = watch(&Signal::ENDING)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let take = Arc::new(take);
        let mut is_first = true;
        for received in received {
            let key = match received.signal {
                Signal::Interrupt if is_first => TerminalKey::Interrupt,
                Signal::Quit => TerminalKey::Detach,
                signal => {
                    last_words();
                    leave(signal);
                }
            };
            is_first &= key != TerminalKey::Interrupt;
            // The call may block on a full queue, and the second Ctrl-C must work.
            let take = Arc::clone(&take);
            thread::spawn(move || take(key));
        }
    })?;
    Ok(())
}

/// Calls `last_words`, from a thread, when the process is asked to end by SIGTERM, and then lets the
/// signal end it.
pub(crate) fn before_end(last_words: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut received = watch(&[Signal::Terminate])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(received) = received.next() {
            last_words();
            end_by(received.signal);
        }
    })?;
    Ok(())
}

#[expect(clippy::exit, reason = "the main thread may be stuck in a write, and must not hold us up")]
fn leave(signal: Signal) -> ! {
    restore();
    if signal == Signal::Interrupt {
        ui::leave_line();
        process::exit(i32::from(ExitCode::Cancelled.code()));
    }
    let line = AT_END.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(line) = line {
        ui::leave_line();
        ui::complain(line);
    }
    process::exit(128 + signal.number())
}
