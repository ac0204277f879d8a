//! Requests of a user in the console or of the system to the program. The process has one handler, here; it
//! passes each request to all listeners.
//!
//! ```text
//!  Ctrl-C, Ctrl-Break, the end of the console, the login, the system
//!        │  on a thread that the system makes for each
//!        ▼
//!     handle ───▶ every listener ───▶ one takes it: it has no other effect
//!                                └──▶ none does: the next handler, which ends the process
//! ```

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    SetConsoleCtrlHandler,
};
use windows_sys::core::BOOL;

use crate::handle::check;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Interrupt,
    /// Ctrl-Break, or another process that ends its group.
    Break,
    /// The console goes away.
    Close,
    /// The person logs out.
    Logoff,
    Shutdown,
}

impl Call {
    fn of(kind: u32) -> Option<Call> {
        match kind {
            CTRL_C_EVENT => Some(Call::Interrupt),
            CTRL_BREAK_EVENT => Some(Call::Break),
            CTRL_CLOSE_EVENT => Some(Call::Close),
            CTRL_LOGOFF_EVENT => Some(Call::Logoff),
            CTRL_SHUTDOWN_EVENT => Some(Call::Shutdown),
            _ => None,
        }
    }

    /// Returns whether the system ends the process as soon as the call is taken, or some seconds later.
    fn is_last(self) -> bool {
        matches!(self, Call::Close | Call::Logoff | Call::Shutdown)
    }
}

/// Returns whether it takes the call.
type Listener = Box<dyn Fn(Call) -> bool + Send>;

struct Listeners(Vec<Listener>);

impl Listeners {
    /// Passes the call to all listeners. Returns whether one of them takes it.
    fn tell(&self, call: Call) -> bool {
        self.0.iter().fold(false, |is_taken, listener| listener(call) | is_taken)
    }
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners(Vec::new()));
/// Set if the handler is there. Another lock than that of the listeners: the system has one of its own around
/// each of its two calls below, so one around both would wait for itself.
static IS_HANDLED: Mutex<bool> = Mutex::new(false);

/// From now on `listener` hears of each call.
pub(crate) fn listen(listener: impl Fn(Call) -> bool + Send + 'static) -> io::Result<()> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).0.push(Box::new(listener));
    let mut is_handled = IS_HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_handled {
        // SAFETY: the handler lives as long as the program.
        check(unsafe { SetConsoleCtrlHandler(Some(handle), 1) })?;
        *is_handled = true;
    }
    Ok(())
}

/// Takes every call from now on, without other listeners.
pub(crate) fn listen_to_nothing() -> io::Result<()> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).0.clear();
    listen(|_| true)
}

/// Runs on a thread of its own.
unsafe extern "system" fn handle(kind: u32) -> BOOL {
    let Some(call) = Call::of(kind) else { return 0 };
    let is_taken = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).tell(call);
    if is_taken && call.is_last() {
        // The system ends us when this returns: we end by ourselves, or it loses patience.
        loop {
            thread::park();
        }
    }
    BOOL::from(is_taken)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Takes this one, and tells of all.
    fn takes(only: Call, tell: &Sender<Call>) -> Listener {
        let tell = tell.clone();
        Box::new(move |call| tell.send(call).is_ok() && call == only)
    }

    #[test]
    fn everybody_hears_of_a_call_and_one_who_takes_it_is_enough() {
        let (tell, heard) = channel();
        let listeners = Listeners(vec![takes(Call::Break, &tell), takes(Call::Interrupt, &tell)]);
        for (call, is_taken) in [(Call::Interrupt, true), (Call::Break, true), (Call::Close, false)]
        {
            assert_eq!(listeners.tell(call), is_taken, "{call:?}");
            assert_eq!(heard.try_iter().collect::<Vec<_>>(), [call, call]);
        }
        assert!(!Listeners(Vec::new()).tell(Call::Interrupt), "nobody is there");
    }

    #[test]
    fn each_call_of_the_system_is_known_and_others_are_left_alone() {
        let last = |kind| Call::of(kind).map(|call| (call, call.is_last()));
        assert_eq!(last(CTRL_C_EVENT), Some((Call::Interrupt, false)));
        assert_eq!(last(CTRL_BREAK_EVENT), Some((Call::Break, false)));
        assert_eq!(last(CTRL_CLOSE_EVENT), Some((Call::Close, true)));
        assert_eq!(last(CTRL_LOGOFF_EVENT), Some((Call::Logoff, true)));
        assert_eq!(last(CTRL_SHUTDOWN_EVENT), Some((Call::Shutdown, true)));
        assert_eq!(last(3), None);
        // SAFETY: it only returns a number.
        assert_eq!(unsafe { handle(3) }, 0);
    }
}
