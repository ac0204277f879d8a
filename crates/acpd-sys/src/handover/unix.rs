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

/// `PID LOCK [SOCKET]`: for the process with that pid, the numbers of the descriptors.
const HERITAGE: &str = "ACPD_HERITAGE";

/// `PID NUMBER`: the socket of a service manager that hands it over once (launchd), for the daemons after the first.
const ACTIVATED: &str = "ACPD_ACTIVATED";

/// The name of acpd's socket among those that are handed over (`FileDescriptorName=`).
const SOCKET: &str = "control";

/// Whether the next daemon has the terminal of this one.
pub const KEEPS_TERMINAL: bool = true;

impl Heritage {
    /// Takes what the daemon before this one has left in this process, if there was one.
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

    /// Executes the next daemon in place of this process; returns only if that fails.
    pub fn pass_to(self, mut command: Command) -> io::Result<()> {
        // A limit that stays as it is does no harm.
        let _ = limits::restore();
        // The variable may name descriptors that were left to this daemon.
        command.env_remove(HERITAGE);
        // Without it the next daemon starts like any other.
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

/// The service manager, if there is one.
#[derive(Debug, Clone, Copy)]
pub struct ServiceManager {
    /// Number of the socket that was handed over.
    socket: Option<RawFd>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Looks for it in the environment, whose variables stay: the successor in the same process finds them again. To
    /// be called once, at the start of `main`, before there is a second thread.
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

    /// Returns whether there is one: it listens for the daemon, or waits for its reports.
    pub fn is_there(&self) -> bool {
        self.socket.is_some() || std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// The socket that was handed over.
    pub fn socket(&self) -> io::Result<Option<ListeningSocket>> {
        // A copy: the number itself stays open for the successor.
        self.socket.map(|number| inherited(number)?.try_clone_to_owned()).transpose()
    }

    /// Keeps the socket open for the successor.
    pub fn keep_socket(&self) {
        // It cannot fail for a number that worked at the start.
        let _ = self.socket.map(|number| leave_inherited(inherited(number)?)).transpose();
    }

    /// The longest time between two signs of life.
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

/// Number of the socket that was handed over without a variable in the environment. From now on there is one.
fn activated() -> Option<RawFd> {
    let own = std::process::id();
    if let Some(number) = std::env::var(ACTIVATED).ok().and_then(|text| number_in(&text, own)) {
        return Some(number);
    }
    let socket = activated_socket(SOCKET)?;
    // As what systemd hands over.
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // Open for as long as the process exists.
    let number = socket.into_raw_fd();
    // SAFETY: no other thread reads the environment: the contract of `find`.
    unsafe { std::env::set_var(ACTIVATED, format!("{own} {number}")) };
    Some(number)
}

/// The number that this text has for the process with this pid.
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
    /// Returns descriptors on which launchd listens under this name, in memory that the caller frees. Works once in
    /// the life of a process, whatever program runs in it.
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
    // Others would be closed.
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
