//! Connections that come in, for a process of one thread.

use std::io;
use std::os::windows::io::{AsRawHandle as _, RawHandle};
use std::path::Path;

use windows_sys::Win32::Foundation::{ERROR_NO_DATA, ERROR_PIPE_CONNECTED};
use windows_sys::Win32::System::Pipes::ConnectNamedPipe;

use crate::overlapped::Call;
use crate::socket::{Listener, Stream, clear_stale_socket};
use crate::wait::{Interest, Source};

/// A pipe that listens for connections. It never waits.
#[derive(Debug)]
pub struct Incoming {
    call: Call,
    /// A client is there without a call that waited for it.
    is_connected: bool,
    // Behind the call, which ends before it is closed.
    listener: Listener,
}

impl Incoming {
    /// Listens on a free name: only we can reach it.
    pub fn bind(path: &Path) -> io::Result<Incoming> {
        clear_stale_socket(path).map_err(io::Error::other)?;
        let listener = Listener::bind(path)?;
        Ok(Incoming { call: Call::new()?, is_connected: false, listener })
    }

    /// Takes up a connection; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&mut self) -> io::Result<Stream> {
        self.connect()?;
        if !self.is_connected {
            match self.call.result() {
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(Some(_)) => {}
                Err(error) if has_come(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.is_connected = false;
        self.listener.take()
    }

    /// Begins to wait for a connection, unless a client is there.
    fn connect(&mut self) -> io::Result<()> {
        if self.is_connected || self.call.is_begun() {
            return Ok(());
        }
        // SAFETY: the handle is open, and the call keeps the state until it is over.
        let begun = self
            .call
            .begin(self.listener.next(), |pipe, _, state| unsafe { ConnectNamedPipe(pipe, state) });
        match begun {
            Err(error) if has_come(&error) => {
                self.is_connected = true;
                self.call.event.set();
                Ok(())
            }
            begun => begun,
        }
    }
}

/// Returns whether a client is there, or came and went.
fn has_come(error: &io::Error) -> bool {
    let come = [ERROR_PIPE_CONNECTED, ERROR_NO_DATA];
    error.raw_os_error().is_some_and(|code| come.contains(&(code as u32)))
}

impl Source for Incoming {
    fn begin(&mut self, _interest: Interest, handles: &mut Vec<RawHandle>) {
        if self.connect().is_err() {
            // The next `accept` gets the error.
            self.call.event.set();
        }
        handles.push(self.call.event.as_raw_handle());
    }
}
