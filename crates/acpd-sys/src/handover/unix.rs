use std::io;
#[cfg(target_os = "macos")]
use std::os::fd::FromRawFd as _;
use std::os::fd::{AsFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
#[cfg(target_os = "macos")]
use nix::libc;
use sd_notify::NotifyState;

use super::{Heritage, ServiceState};
use crate::limits;
use crate::lock::InstanceLock;
use crate::process::{inherited, leave_inherited, take_inherited};
use crate::runtime::ListeningSocket;

/// `PID LOCK [SOCKET]`: descriptor numbers for the process with that pid.
const HERITAGE: &str = "ACPD_HERITAGE";

/// `PID NUMBER`: the socket that launchd hands over only once, for the daemons after the first.
const ACTIVATED: &str = "ACPD_ACTIVATED";

/// Name of acpd's socket among those handed over (`FileDescriptorName=`).
const SOCKET: &str = "control";

/// The next daemon has the terminal of this one.
pub const KEEPS_TERMINAL: bool = true;

impl Heritage {
    /// Takes the heritage of the previous daemon in this process.
    pub fn take(lock: &Path) -> Option<Heritage> {
        let text = std::env::var(HERITAGE).ok()?;
        let mut numbers = text.split(' ').map(|number| number.parse::<i32>().ok());
        if numbers.next()? != i32::try_from(std::process::id()).ok() {
            return None;
        }
        // Both are taken before either is checked, so that one that is not used is closed.
        let mut take = || take_inherited(numbers.next()??).ok();
        let (file, socket) = (take(), take());
        let lock = InstanceLock::inherited(file?, lock).ok()?;
        Some(Heritage { lock, socket })
    }

    /// Executes the next daemon in this process; returns only on failure.
    pub fn pass_to(self, mut command: Command) -> io::Result<()> {
        // An unrestored limit does no harm.
        let _ = limits::restore();
        // The variable may name descriptors from the start of this daemon.
        command.env_remove(HERITAGE);
        // Without a heritage the next daemon starts like any other.
        if let Ok(text) = self.leave() {
            command.env(HERITAGE, text);
        }
        Err(command.exec())
    }

    fn leave(&self) -> io::Result<String> {
        let mut text = format!("{} {}", std::process::id(), leave_inherited(self.lock.as_fd())?);
        if let Some(socket) = &self.socket {
            text = format!("{text} {}", leave_inherited(socket.as_fd())?);
        }
        Ok(text)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ServiceManager {
    socket: Option<RawFd>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads the environment, and keeps its variables for the successor in this process. Call it
    /// once, at the start of `main`, before there is a second thread.
    pub fn find() -> ServiceManager {
        let given = sd_notify::listen_fds_with_names().ok();
        let given: Vec<_> = given.into_iter().flatten().collect();
        let named = given.iter().find(|(_, name)| name == SOCKET);
        // A single socket needs no name.
        let only = given.first().filter(|_| given.len() == 1);
        ServiceManager {
            socket: named.or(only).map(|(number, _)| *number).or_else(activated),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Returns whether a manager listens for the daemon or expects its reports.
    pub fn is_there(&self) -> bool {
        self.socket.is_some() || std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    pub fn socket(&self) -> io::Result<Option<ListeningSocket>> {
        // A copy: the number itself stays open for the successor.
        self.socket.map(|number| inherited(number)?.try_clone_to_owned()).transpose()
    }

    /// Keeps the socket open for the successor.
    pub fn keep_socket(&self) {
        // Cannot fail for a number that worked at the start.
        let _ = self.socket.map(|number| leave_inherited(inherited(number)?)).transpose();
    }

    /// Returns the longest time between two signs of life.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub fn report(&self, state: ServiceState) -> io::Result<()> {
        sd_notify::notify(match state {
            ServiceState::Ready => &[NotifyState::Ready, NotifyState::Status("serving")],
            ServiceState::Alive => &[NotifyState::Watchdog],
            ServiceState::Restarting => &[NotifyState::Status("starting again")],
            ServiceState::Stopping => &[NotifyState::Stopping, NotifyState::Status("stopping")],
        })
    }
}

/// Returns the socket of launchd, and remembers its number in the environment.
fn activated() -> Option<RawFd> {
    let own = std::process::id();
    if let Some(number) = std::env::var(ACTIVATED).ok().and_then(|text| number_in(&text, own)) {
        return Some(number);
    }
    let socket = activated_socket(SOCKET)?;
    // Like a socket from systemd.
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // Open for as long as the process exists.
    let number = socket.into_raw_fd();
    // SAFETY: no other thread reads the environment: the contract of `find`.
    unsafe { std::env::set_var(ACTIVATED, format!("{own} {number}")) };
    Some(number)
}

/// Returns the number if the text is for the process `own`.
fn number_in(text: &str, own: u32) -> Option<RawFd> {
    let (pid, number) = text.split_once(' ')?;
    if pid.parse() == Ok(own) { number.parse().ok() } else { None }
}

#[cfg(not(target_os = "macos"))]
fn activated_socket(_name: &str) -> Option<OwnedFd> {
    None
}

#[cfg(target_os = "macos")]
unsafe extern "C" {
    /// Returns descriptors on which launchd listens under this name, in memory that the caller
    /// frees. Works once per process, even if the process executes another program.
    fn launch_activate_socket(
        name: *const std::ffi::c_char,
        descriptors: *mut *mut libc::c_int,
        count: *mut usize,
    ) -> libc::c_int;
}

#[cfg(target_os = "macos")]
fn activated_socket(name: &str) -> Option<OwnedFd> {
    let name = std::ffi::CString::new(name).ok()?;
    let (mut descriptors, mut count) = (std::ptr::null_mut::<libc::c_int>(), 0);
    // SAFETY: the name ends with a zero, and both places are ours.
    let error =
        unsafe { launch_activate_socket(name.as_ptr(), &raw mut descriptors, &raw mut count) };
    if error != 0 || descriptors.is_null() {
        return None;
    }
    // SAFETY: the call has put that many descriptors there, each of them open and owned here.
    let sockets: Vec<OwnedFd> = unsafe {
        std::slice::from_raw_parts(descriptors, count)
            .iter()
            .map(|number| OwnedFd::from_raw_fd(*number))
            .collect()
    };
    // SAFETY: the memory is ours, and was made with malloc.
    unsafe { libc::free(descriptors.cast()) };
    sockets.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_that_of_the_process_that_it_was_given_to() {
        assert_eq!(number_in("7 5", 7), Some(5));
        for other in ["8 5", "7", "7 x", " 5", "", "7 5 6"] {
            assert_eq!(number_in(other, 7), None, "{other:?}");
        }
    }
}
