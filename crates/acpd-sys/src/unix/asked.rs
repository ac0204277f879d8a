//! Signals from a user or the system to a program in a terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::getpgrp;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

pub use crate::ask::Ask;

/// Takes these from now on, and waits for each; else it would end the process.
pub fn asked(wanted: &[Ask]) -> io::Result<impl Iterator<Item = Ask> + Send + use<>> {
    let mut signals = Signals::new(wanted.iter().map(|ask| ask.signal()))?;
    Ok(std::iter::from_fn(move || {
        let came = signals.forever().next()?;
        Ask::ALL.into_iter().find(|ask| ask.signal() == came)
    }))
}

/// Sends SIGINT to our process group including us, as Ctrl-C does.
pub fn interrupt_all() -> io::Result<()> {
    killpg(getpgrp(), Signal::SIGINT).map_err(io::Error::from)
}

/// Ends the process as the signal does without a handler.
pub fn end_by(ask: Ask) {
    // There is nothing to be done if it should not.
    let _ = low_level::emulate_default_handler(ask.signal());
}

/// Leaves Ctrl-C to the programs that this one has started.
pub fn leave_interrupts() {
    drop(flag::register(SIGINT, Arc::new(AtomicBool::new(false))));
}
