//! Requests of the system or a console to a program. There is none to read the configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::console::{self, Call};

pub use crate::news::{Request, Wish};

/// Requests, as they come.
#[derive(Debug)]
pub struct Requests(Receiver<Request>);

impl Requests {
    /// Catches these requests, which have no other effect from now on.
    pub fn watch() -> io::Result<Requests> {
        let (tell, requests) = channel();
        console::listen(move |call| {
            // The receiver may be gone when the program ends.
            let _ = tell.send(Request { wish: Wish::Stop, name: name(call), sender: 0 });
            true
        })?;
        Ok(Requests(requests))
    }

    /// Waits for the next ones; blocks the thread.
    pub fn wait(&mut self) -> Vec<Request> {
        // The sender is there as long as the process is.
        self.0.recv().into_iter().collect()
    }
}

/// Sets `stop` on a request to end, or when the console is closed.
pub fn on_stop(stop: &Arc<AtomicBool>) -> io::Result<()> {
    let stop = Arc::clone(stop);
    console::listen(move |_| {
        stop.store(true, Ordering::Relaxed);
        true
    })
}

/// The system's name for the call.
fn name(call: Call) -> &'static str {
    match call {
        Call::Interrupt => "CTRL_C",
        Call::Break => "CTRL_BREAK",
        Call::Close => "CTRL_CLOSE",
        Call::Logoff => "CTRL_LOGOFF",
        Call::Shutdown => "CTRL_SHUTDOWN",
    }
}
