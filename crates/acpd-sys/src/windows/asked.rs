//! Requests of a user or the system to a program in a console.

use std::io;
use std::sync::mpsc;

use windows_sys::Win32::System::Console::{CTRL_C_EVENT, GenerateConsoleCtrlEvent};

use crate::console::{self, Call};
use crate::handle::check;

pub use crate::ask::Ask;

/// Takes these from now on, and waits for each; else it would end the process.
pub fn asked(wanted: &[Ask]) -> io::Result<impl Iterator<Item = Ask> + Send + use<>> {
    let (sender, came) = mpsc::channel();
    let wanted = wanted.to_vec();
    console::listen(move |call| {
        let ask = match call {
            Call::Interrupt => Ask::Interrupt,
            Call::Break => Ask::Quit,
            Call::Close => Ask::HangUp,
            Call::Logoff | Call::Shutdown => Ask::End,
        };
        // A listener that is gone takes no event.
        wanted.contains(&ask) && sender.send(ask).is_ok()
    })?;
    Ok(came.into_iter())
}

/// Sends Ctrl-C to all programs in our terminal, including us.
pub fn interrupt_all() -> io::Result<()> {
    // SAFETY: it only takes numbers. 0 stands for all programs in our console.
    check(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
}

/// Ends the process as the request does without a listener.
#[expect(clippy::exit, reason = "the system does no more")]
pub fn end_by(ask: Ask) {
    std::process::exit(128 + ask.signal());
}

/// Leaves Ctrl-C to the programs that this one has started.
pub fn leave_interrupts() {
    // Events that are not waited for are lost, and have no other effect.
    drop(asked(&[Ask::Interrupt]).map(|asks| std::thread::spawn(move || asks.for_each(drop))));
}
