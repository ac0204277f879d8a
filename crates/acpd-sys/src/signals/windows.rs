//! ```text
//!  Ctrl-C, Ctrl-Break, the end of the console, the login, the system
//!        │  on a thread that the system makes for each
//!        ▼
//!     handle ───▶ every listener ───▶ one takes it: nothing else is done with it
//!                                └──▶ none takes it: the next handler, which ends the process
//! ```

use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle, RawHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, GetLastError};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Threading::{
    CreateEventW, EVENT_MODIFY_STATE, OpenEventW, SetEvent,
};
use windows_sys::core::BOOL;

use super::{ReceivedSignal, SeenSignals, Signal};
use crate::handle::{Event, check, is_set, open_to_look, owned, wait_any};
use crate::users::PrivateTo;
use crate::wait::{Interest, Source};

/// As on Linux; the signal never arrives.
pub(super) const SIGCONT: i32 = 18;

pub const STOP_REQUESTS: [Signal; 3] = [Signal::Interrupt, Signal::Quit, Signal::Terminate];

/// Returns whether it takes the signal.
type Listener = Box<dyn Fn(Signal) -> bool + Send>;

static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());
/// Set once the handler is registered. The system holds a lock around each of the two calls below,
/// so one lock for both statics would deadlock.
static IS_HANDLED: Mutex<bool> = Mutex::new(false);

fn listeners() -> MutexGuard<'static, Vec<Listener>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(listener: impl Fn(Signal) -> bool + Send + 'static) -> io::Result<()> {
    listeners().push(Box::new(listener));
    let mut is_handled = IS_HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_handled {
        // SAFETY: the handler lives as long as the program.
        check(unsafe { SetConsoleCtrlHandler(Some(handle), 1) })?;
        *is_handled = true;
    }
    Ok(())
}

/// Returns the signal of an event, and whether the system ends the process when the handler
/// returns, or some seconds later.
fn signal_of(event: u32) -> Option<(Signal, bool)> {
    match event {
        CTRL_C_EVENT => Some((Signal::Interrupt, false)),
        CTRL_BREAK_EVENT => Some((Signal::Quit, false)),
        CTRL_CLOSE_EVENT | CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT => {
            Some((Signal::Terminate, true))
        }
        _ => None,
    }
}

/// Runs on a thread of the system.
unsafe extern "system" fn handle(event: u32) -> BOOL {
    let Some((signal, is_last)) = signal_of(event) else { return 0 };
    let is_taken = deliver(&listeners(), signal);
    if is_taken && is_last {
        // Returning ends the process at once; until then it can exit by itself.
        loop {
            thread::park();
        }
    }
    BOOL::from(is_taken)
}

/// Calls every listener. Returns whether one takes the signal.
fn deliver(listeners: &[Listener], signal: Signal) -> bool {
    listeners.iter().fold(false, |is_taken, listener| listener(signal) | is_taken)
}

pub fn watch(
    signals: &[Signal],
) -> io::Result<impl Iterator<Item = ReceivedSignal> + Send + use<>> {
    let (sender, received) = mpsc::channel();
    let signals = signals.to_vec();
    listen(move |signal| {
        // Without a receiver, the signal is not taken.
        let received = ReceivedSignal { signal, sender: None };
        signals.contains(&signal) && sender.send(received).is_ok()
    })?;
    Ok(received.into_iter())
}

pub fn ignore(signals: &[Signal]) -> io::Result<()> {
    let signals = signals.to_vec();
    listen(move |signal| signals.contains(&signal))
}

/// Works once per process. A nudge is an event with the pid in its name, which only this user can
/// set.
pub fn nudges() -> io::Result<impl Iterator<Item = ()> + Send + use<>> {
    let private = PrivateTo::user()?;
    let name = nudge_name(std::process::id());
    // SAFETY: the name ends with a zero, and the attributes live as long as the call. One wait takes one nudge.
    let event = owned(unsafe { CreateEventW(&private.attributes(), 0, 0, name.as_ptr()) })?;
    // SAFETY: it only returns the error of the call before.
    if unsafe { GetLastError() } == ERROR_ALREADY_EXISTS {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(std::iter::from_fn(move || {
        wait_any(&[event.as_raw_handle()], None).ok().flatten().map(drop)
    }))
}

pub fn nudge(pid: u32) {
    // SAFETY: the name ends with a zero; it only returns a handle.
    let event = owned(unsafe { OpenEventW(EVENT_MODIFY_STATE, 0, nudge_name(pid).as_ptr()) });
    if let Ok(event) = event {
        // SAFETY: the handle is open.
        unsafe { SetEvent(event.as_raw_handle()) };
    }
}

/// Returns a name in the namespace of the login, which other users cannot take.
fn nudge_name(pid: u32) -> Vec<u16> {
    format!("Local\\acpd-nudge-{pid}\0").encode_utf16().collect()
}

/// Takes and drops every signal: the program that runs instead of this one gets its own.
pub(crate) fn leave_to_others() -> io::Result<()> {
    listeners().clear();
    listen(|_| true)
}

#[expect(clippy::exit, reason = "the system does no more")]
pub fn end_by(signal: Signal) {
    std::process::exit(128 + signal.number());
}

/// Sends Ctrl-C to every process of the console, this one included.
pub fn interrupt_console() -> io::Result<()> {
    // SAFETY: it only takes numbers.
    check(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) })
}

#[derive(Debug)]
pub struct SignalPipe {
    stop: Arc<Event>,
    child: Option<OwnedHandle>,
    /// The child's end was reported.
    is_reported: bool,
}

impl SignalPipe {
    /// Catches every signal from now on, and drops `Interrupt`.
    pub fn open() -> io::Result<SignalPipe> {
        let stop = Arc::new(Event::new()?);
        let event = Arc::clone(&stop);
        listen(move |signal| {
            if signal != Signal::Interrupt {
                event.set();
            }
            true
        })?;
        Ok(SignalPipe { stop, child: None, is_reported: false })
    }

    pub fn watch_child(&mut self, child: u32) -> io::Result<()> {
        (self.child, self.is_reported) = (Some(open_to_look(child)?), false);
        Ok(())
    }

    pub fn take(&mut self) -> SeenSignals {
        let stop = is_set(self.stop.as_raw_handle());
        self.stop.reset();
        let has_ended = self.child.as_ref().is_some_and(|child| is_set(child.as_raw_handle()));
        let child = has_ended && !std::mem::replace(&mut self.is_reported, has_ended);
        SeenSignals { child, stop }
    }
}

impl Source for SignalPipe {
    fn begin(&mut self, _interest: Interest, handles: &mut Vec<RawHandle>) {
        handles.push(self.stop.as_raw_handle());
        // A process that has ended stays set, and would wake every wait.
        let child = self.child.as_ref().filter(|_| !self.is_reported);
        handles.extend(child.map(|child| child.as_raw_handle()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listener_gets_a_signal_and_one_that_takes_it_is_enough() {
        let (sender, received) = mpsc::channel();
        let takes = |only| -> Listener {
            let sender = sender.clone();
            Box::new(move |signal| sender.send(signal).is_ok() && signal == only)
        };
        let listeners = [takes(Signal::Quit), takes(Signal::Interrupt)];
        for (signal, is_taken) in
            [(Signal::Interrupt, true), (Signal::Quit, true), (Signal::Terminate, false)]
        {
            assert_eq!(deliver(&listeners, signal), is_taken, "{signal:?}");
            assert_eq!(received.try_iter().collect::<Vec<_>>(), [signal, signal]);
        }
        assert!(!deliver(&[], Signal::Interrupt));
    }

    #[test]
    fn unknown_events_are_left_to_the_system() {
        assert_eq!(signal_of(3), None);
        // SAFETY: it only returns a number.
        assert_eq!(unsafe { handle(3) }, 0);
    }
}
