//! What takes the place of signals, as something to wait for: the end of a child, and requests to end, which come from the
//! console.

use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle, RawHandle};
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use crate::handle::{Event, check, is_set};
use crate::os;
use crate::wait::{Interest, Source};

/// Somebody asks us to end.
static STOP: OnceLock<Event> = OnceLock::new();

/// What came since the last look.
#[derive(Debug)]
pub struct Signals {
    stop: &'static Event,
    child: Option<OwnedHandle>,
    /// The child's end was told.
    told: bool,
}

/// What came since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A child ended.
    pub child: bool,
    /// Somebody asks us to end (`CTRL_BREAK`, or the console, the login or the system ends).
    pub stop: bool,
}

/// Takes requests to end from now on, and lets `CTRL_C` pass. To be called once.
pub fn catch() -> io::Result<Signals> {
    let made = Event::new()?;
    let stop = STOP.get_or_init(|| made);
    // SAFETY: the handler lives as long as the program.
    check(unsafe { SetConsoleCtrlHandler(Some(note), 1) })?;
    Ok(Signals { stop, child: None, told: false })
}

/// Runs on a thread of its own.
unsafe extern "system" fn note(kind: u32) -> BOOL {
    if kind == CTRL_C_EVENT {
        return 1;
    }
    if let Some(stop) = STOP.get() {
        stop.set();
    }
    if kind != CTRL_BREAK_EVENT {
        // The system ends us when this returns: we end by ourselves, or it loses patience.
        std::thread::sleep(Duration::MAX);
    }
    1
}

impl Signals {
    /// Tells of the end of this child, too.
    pub fn watch(&mut self, child: u32) -> io::Result<()> {
        self.child = Some(os::open(child)?);
        self.told = false;
        Ok(())
    }

    /// What came since the last call.
    pub fn take(&mut self) -> Seen {
        let stop = is_set(self.stop.as_raw_handle());
        self.stop.reset();
        let has_ended = self.child.as_ref().is_some_and(|child| is_set(child.as_raw_handle()));
        let child = has_ended && !std::mem::replace(&mut self.told, has_ended);
        Seen { child, stop }
    }
}

impl Source for Signals {
    fn begin(&mut self, _interest: Interest, handles: &mut Vec<RawHandle>) {
        handles.push(self.stop.as_raw_handle());
        // An end stays an end, and would wake us for ever.
        handles
            .extend(self.child.as_ref().filter(|_| !self.told).map(|child| child.as_raw_handle()));
    }
}
