//! The pipe between a daemon that starts and the client that has started it. No handle is inherited for it:
//! the pipe has a random name, and is for this user alone.
//!
//! A daemon belongs to no console of others, and to no Job of others, see [`apart`].

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Console::{STD_ERROR_HANDLE, SetStdHandle};

use crate::apart::{self, Apart, Standard};
use crate::handle::check;
use crate::os;
use crate::socket::{Listener, Stream, connect, other_end};

/// How long the daemon tries to reach its client.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Started {
    listener: Listener,
    daemon: Apart,
    stream: Option<Stream>,
}

#[derive(Debug)]
pub(crate) struct Teller(Stream);

/// From now on this file gets what the process writes to stderr. It stays open for as long as the process is.
pub(crate) fn stderr_to(file: &File) -> io::Result<()> {
    let handle = std::os::windows::io::IntoRawHandle::into_raw_handle(file.try_clone()?);
    // SAFETY: the handle is open, and is not closed.
    check(unsafe { SetStdHandle(STD_ERROR_HANDLE, handle) })
}

/// Starts the daemon, whose end of the pipe is named by this variable, and which writes to this file.
pub(crate) fn start(mut command: Command, out: File, variable: &str) -> io::Result<Started> {
    let chance = RandomState::new().hash_one(Instant::now());
    let name = os::socket_at(&std::env::temp_dir(), &format!("start-{chance:016x}"));
    let listener = Listener::bind(&name)?;
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\".into());
    command.current_dir(root).env(variable, &name);
    let mut standard = Standard::none()?;
    (standard.0[1], standard.0[2]) = (out.try_clone()?, out);
    let daemon = apart::start(command, standard, false)?;
    Ok(Started { listener, daemon, stream: None })
}

impl Started {
    /// Returns whether the daemon is in a Job that no process may leave.
    pub(crate) fn is_bound(&self) -> bool {
        self.daemon.is_bound()
    }

    /// Reads once: how many bytes, 0 at the end of the pipe; `None` if the deadline passed.
    pub(crate) fn read_until(
        &mut self,
        end: Instant,
        said: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let daemon = self.daemon.handle();
                match self.listener.accept_until(Some(end), Some(daemon))? {
                    Some(stream) => stream,
                    None if Instant::now() >= end => return Ok(None),
                    // The daemon has ended.
                    None => return Ok(Some(0)),
                }
            }
        };
        let stream = self.stream.insert(stream);
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        match (&*stream).read(said) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            read => read.map(Some),
        }
    }
}

impl Teller {
    /// The end that this value of the variable names.
    pub(crate) fn named(value: &str) -> Option<Teller> {
        let stream = connect(Path::new(value), PATIENCE).ok()?;
        let is_ours = other_end(&stream).is_ok_and(|client| client.is_ours());
        is_ours.then_some(Teller(stream))
    }
}

impl Write for Teller {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.0).flush()
    }
}
