//! Ctrl-C: the first one is an event, the second one leaves at once.

use std::io;
use std::process;
use std::thread;

use acpd_api::ExitCode;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{terminal, ui};

/// Calls `first` at the first Ctrl-C, from a thread. A second one, a hang-up or a request to end
/// leaves the process at once with the usual code and a usable terminal.
pub(crate) fn on_interrupt(first: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first = Some(first);
        for signal in signals.forever() {
            match first.take() {
                Some(first) if signal == SIGINT => {
                    // It may block on a queue that nobody drains, and the second Ctrl-C must work.
                    thread::spawn(first);
                }
                _ => leave(signal),
            }
        }
    })?;
    Ok(())
}

#[expect(clippy::exit, reason = "the main thread may be stuck in a write, and must not hold us up")]
fn leave(signal: i32) -> ! {
    terminal::restore();
    if signal == SIGINT {
        ui::leave_line();
        process::exit(i32::from(ExitCode::Cancelled.code()));
    }
    process::exit(128 + signal)
}
