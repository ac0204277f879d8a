//! What the system or a console asks of a program. Nobody asks for the configuration to be read again by such means.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    SetConsoleCtrlHandler,
};
use windows_sys::core::BOOL;

use crate::handle::check;

pub use crate::news::{Request, Wish};

/// Who hears of requests. The system calls with nothing but a number, on a thread of its own.
static HEARD: Mutex<Heard> = Mutex::new(Heard { tell: None, stop: None });

struct Heard {
    tell: Option<Sender<Request>>,
    stop: Option<Arc<AtomicBool>>,
}

/// Requests, as they come.
#[derive(Debug)]
pub struct Requests(Receiver<Request>);

impl Requests {
    /// From now on nothing else happens when somebody asks.
    pub fn watch() -> io::Result<Requests> {
        let (tell, requests) = channel();
        hear(|heard| heard.tell = Some(tell))?;
        Ok(Requests(requests))
    }

    /// Waits for the next ones; blocks the thread.
    pub fn wait(&mut self) -> Vec<Request> {
        // The sender is there as long as the process is.
        self.0.recv().into_iter().collect()
    }
}

/// Sets `stop` when somebody asks for an end, or the console is closed.
pub fn on_stop(stop: &Arc<AtomicBool>) -> io::Result<()> {
    hear(|heard| heard.stop = Some(Arc::clone(stop)))
}

fn hear(how: impl FnOnce(&mut Heard)) -> io::Result<()> {
    how(&mut HEARD.lock().unwrap_or_else(PoisonError::into_inner));
    // SAFETY: the handler lives as long as the program.
    check(unsafe { SetConsoleCtrlHandler(Some(take), 1) })
}

/// Takes a request, so that nobody else does.
unsafe extern "system" fn take(kind: u32) -> BOOL {
    let name = match kind {
        CTRL_C_EVENT => "CTRL_C",
        CTRL_BREAK_EVENT => "CTRL_BREAK",
        CTRL_CLOSE_EVENT => "CTRL_CLOSE",
        CTRL_LOGOFF_EVENT => "CTRL_LOGOFF",
        CTRL_SHUTDOWN_EVENT => "CTRL_SHUTDOWN",
        _ => return 0,
    };
    let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tell) = &heard.tell {
        // Nobody listens any more when the program ends.
        let _ = tell.send(Request { wish: Wish::Stop, name, sender: 0 });
    }
    if let Some(stop) = &heard.stop {
        stop.store(true, Ordering::Relaxed);
    }
    drop(heard);
    if matches!(kind, CTRL_CLOSE_EVENT | CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT) {
        // The process is ended as soon as this returns, or some seconds later. It ends by itself before that.
        loop {
            thread::park();
        }
    }
    1
}
