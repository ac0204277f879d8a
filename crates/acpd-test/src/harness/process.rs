//! The processes of a test, found by the home in their environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: String,
}

/// Every process whose `HOME` is this directory or below it, without zombies.
pub fn tree_of_home(root: &Path) -> Vec<Process> {
    find(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut homes =
            environ.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(b"HOME="));
        homes.any(|home| Path::new(OsStr::from_bytes(home)).starts_with(root))
    })
}

/// Every shim with a directory below this state directory. Shims have no environment to be found
/// by.
pub fn shims_of(state: &Path) -> Vec<Process> {
    let below = state.join("shims");
    find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        words.next() == Some(b"shim")
            && words.next().is_some_and(|dir| Path::new(OsStr::from_bytes(dir)).starts_with(&below))
    })
}

fn find(belongs: impl Fn(u32) -> bool) -> Vec<Process> {
    let pids = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // A process that ends meanwhile does not count.
    let command = |pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
        Process { pid, command }
    };
    pids.filter(|pid| belongs(*pid)).map(command).filter(|process| exists(process.pid)).collect()
}

/// Returns whether this process runs. A zombie does not, unless threads of it are still ending.
pub fn exists(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes().first().copied());
    if !matches!(state, Some(Some(b'Z' | b'X'))) {
        return true;
    }
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
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
