//! The processes of a test, found by the home in their environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use acpd_sys::process::{Condition, condition};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::{command_of, environ_of, is_shim, pids, shown_command};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: String,
}

/// Every process whose `HOME` is this directory or below it, without zombies.
pub(super) fn tree_of_home(root: &Path) -> Vec<Process> {
    find(|pid| {
        let environ = environ_of(pid);
        let mut homes =
            environ.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(b"HOME="));
        homes.any(|home| Path::new(OsStr::from_bytes(home)).starts_with(root))
    })
}

/// Every shim with a directory below this state directory. Shims have no environment to be found
/// by.
pub(super) fn shims_of(state: &Path) -> Vec<Process> {
    let below = state.join("shims");
    find(|pid| {
        let line = command_of(pid);
        let dir = line.split(|byte| *byte == 0).nth(2).unwrap_or_default();
        is_shim(&line) && Path::new(OsStr::from_bytes(dir)).starts_with(&below)
    })
}

fn find(belongs: impl Fn(u32) -> bool) -> Vec<Process> {
    let found = pids().filter(|pid| belongs(*pid));
    // A process that ends meanwhile does not count.
    let found = found.map(|pid| Process { pid, command: shown_command(pid) });
    found.filter(|process| exists(process.pid)).collect()
}

/// Returns whether this process runs. A zombie does not, unless threads of it are still ending.
pub fn exists(pid: u32) -> bool {
    condition(pid).is_some_and(|condition| condition != Condition::Ended)
}

/// A process that is gone already is fine.
pub fn kill9(pid: u32) {
    signal(pid, Signal::SIGKILL);
}

/// A process that is gone already is fine.
pub fn signal(pid: u32, signal: Signal) {
    assert!(pid > 1, "not a process of a test: {pid}");
    let _ = kill(Pid::from_raw(pid as i32), signal);
}

/// Resident memory in bytes.
pub fn rss(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Peak of [`rss`] in bytes.
pub fn peak_rss(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}
