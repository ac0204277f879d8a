//! What a person or the system asks of a program in a console.

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
        // Who listens no more takes nothing.
        wanted.contains(&ask) && sender.send(ask).is_ok()
    })?;
    Ok(came.into_iter())
}

/// Asks everybody in our terminal, us too, as Ctrl-C does.
pub fn interrupt_all() -> io::Result<()> {
    // SAFETY: it only takes numbers. 0 is whoever has our console.
    check(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
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
