//! Keys and signals from the terminal.
//!
//! The first Ctrl-C and each Ctrl-\ are events. The second Ctrl-C ends the process at once. Before
//! SIGTERM ends the process, a last line can be written.
//!
//! While a question is open, the terminal delivers each key at once, without echo; Ctrl-C stays a
//! signal. Keys typed before the question are discarded, so that they cannot answer it.

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

/// The terminal's modes before the open question. Global, because a signal ends the process from
/// another thread.
static BEFORE: Mutex<Option<Modes>> = Mutex::new(None);

/// Single-key mode; dropping this restores the terminal.
#[derive(Debug)]
pub(crate) struct KeyMode(());

impl KeyMode {
    pub(crate) fn enter() -> io::Result<KeyMode> {
        // Locked during the switch, so that a signal waits until there are modes to restore.
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

pub(crate) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        before.restore();
    }
}

/// End of input: Ctrl-D, which a terminal does not pass as a byte.
pub(crate) const END: u8 = 4;

/// Passes every key and finally [`END`] to `take`, from a thread, until `take` returns `false`.
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

static AT_END: Mutex<Option<Text>> = Mutex::new(None);

/// Sets the line to print before SIGTERM or SIGHUP ends the process.
pub(crate) fn say_at_end(line: Option<Text>) {
    *AT_END.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// Calls `take` at the first Ctrl-C ([`Signal::Interrupt`]) and at each Ctrl-\ ([`Signal::Quit`]),
/// from a thread. A second Ctrl-C, SIGHUP or SIGTERM calls `last_words`, restores the terminal, and
/// ends the process with the usual code.
pub(crate) fn on_keys(
    take: impl Fn(Signal) + Send + Sync + 'static,
    last_words: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let received = watch(&Signal::ENDING)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let take = Arc::new(take);
        let mut is_first = true;
        for signal in received.map(|received| received.signal) {
            match signal {
                Signal::Interrupt if is_first => is_first = false,
                Signal::Quit => {}
                signal => {
                    last_words();
                    leave(signal);
                }
            }
            // The call may block on a full queue, and the second Ctrl-C must work.
            let take = Arc::clone(&take);
            thread::spawn(move || take(signal));
        }
    })?;
    Ok(())
}

/// Calls `last_words` from a thread at SIGTERM, then lets the signal end the process.
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
