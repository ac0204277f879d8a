//! What a person or the system asks of a program in a console.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, SetConsoleCtrlHandler,
};
use windows_sys::core::BOOL;

use crate::handle::check;

pub use crate::ask::Ask;

/// Whoever waits, and for what.
static WAITS: Mutex<Vec<(Vec<Ask>, Sender<Ask>)>> = Mutex::new(Vec::new());

/// Takes these from now on, and waits for each; else it would end the process.
pub fn asked(wanted: &[Ask]) -> io::Result<impl Iterator<Item = Ask> + Send + use<>> {
    let (sender, came) = mpsc::channel();
    WAITS.lock().unwrap_or_else(PoisonError::into_inner).push((wanted.to_vec(), sender));
    // SAFETY: the handler lives as long as the program.
    check(unsafe { SetConsoleCtrlHandler(Some(note), 1) })?;
    Ok(came.into_iter())
}

/// Runs on a thread of its own.
unsafe extern "system" fn note(kind: u32) -> BOOL {
    let ask = match kind {
        CTRL_C_EVENT => Ask::Interrupt,
        CTRL_BREAK_EVENT => Ask::Quit,
        CTRL_CLOSE_EVENT => Ask::HangUp,
        _ => Ask::End,
    };
    let waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut taken = false;
    for (_, sender) in waits.iter().filter(|(wanted, _)| wanted.contains(&ask)) {
        taken |= sender.send(ask).is_ok();
    }
    drop(waits);
    if taken && matches!(ask, Ask::End | Ask::HangUp) {
        // The system ends us when this returns: we end by ourselves, or it loses patience.
        std::thread::sleep(Duration::MAX);
    }
    BOOL::from(taken)
}

/// Ends the process as if nobody had taken it.
#[expect(clippy::exit, reason = "the system does no more")]
pub fn end_by(ask: Ask) {
    std::process::exit(128 + ask.signal());
}

/// Leaves Ctrl-C to the programs that this one has started.
pub fn leave_interrupts() {
    // What nobody waits for is lost, and nothing else is done with it.
    drop(asked(&[Ask::Interrupt]).map(|asks| std::thread::spawn(move || asks.for_each(drop))));
}
