//! Processes, found in `/proc`, and waits for them; a system without it shows none.

use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two checks of a wait.
const LOOK: Duration = Duration::from_millis(5);

/// A child process that is killed on drop, unless it has ended by then.
#[derive(Debug)]
pub struct ChildGuard(pub Child);

impl ChildGuard {
    pub fn is_over(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    pub(crate) fn kill(&mut self) {
        // The process may have ended by itself. It is not reaped, so its pid is its own.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Calls `look` until it returns something; `None` when this time has passed.
pub(crate) fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= end {
            return seen;
        }
        thread::sleep(LOOK);
    }
}

pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The environment with which a process was started, with a NUL after each variable; empty if it is
/// gone.
pub(crate) fn environ_of(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// The command line of a process, with a NUL after each word; empty if it is gone.
pub(crate) fn command_of(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The command line of a process in one line.
pub(crate) fn shown_command(pid: u32) -> String {
    String::from_utf8_lossy(&command_of(pid)).replace('\0', " ").trim_end().to_owned()
}

pub(crate) fn is_shim(command: &[u8]) -> bool {
    command.split(|byte| *byte == 0).nth(1) == Some(b"shim")
}
