//! The replacement of signals, as something to wait for: the end of a child, and requests to end, which come
//! from the console.

use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle, RawHandle};
use std::sync::Arc;

use crate::console::{self, Call};
use crate::handle::{Event, is_set};
use crate::os;
use crate::wait::{Interest, Source};

/// The sources of such events.
#[derive(Debug)]
pub struct Signals {
    /// Set on a request to end.
    stop: Arc<Event>,
    child: Option<OwnedHandle>,
    /// The child's end was reported.
    told: bool,
}

/// Events since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub child: bool,
    /// A request to end (`CTRL_BREAK`, or the console, the login or the system ends).
    pub stop: bool,
}

/// Takes requests to end from now on, and lets `CTRL_C` pass. To be called once.
pub fn catch() -> io::Result<Signals> {
    let stop = Arc::new(Event::new()?);
    let told = Arc::clone(&stop);
    console::listen(move |call| {
        if call != Call::Interrupt {
            told.set();
        }
        true
    })?;
    Ok(Signals { stop, child: None, told: false })
}

impl Signals {
    /// Tells of the end of this child, too.
    pub fn watch(&mut self, child: u32) -> io::Result<()> {
        self.child = Some(os::open(child)?);
        self.told = false;
        Ok(())
    }

    /// Returns the events since the last call.
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
