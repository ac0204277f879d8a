//! The service manager: what it has handed over, and what it is told.

use std::io;
use std::os::fd::{IntoRawFd as _, RawFd};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use sd_notify::NotifyState;

use crate::door::Handed;
use crate::{inherit, os};

pub use crate::news::News;

/// The name of our socket among those that are handed over (`FileDescriptorName=`).
const SOCKET: &str = "control";

/// The service manager, if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Manager {
    /// Number of the socket that was handed over.
    socket: Option<RawFd>,
    /// How often it wants a sign of life.
    watchdog: Option<Duration>,
}

/// `PID NUMBER`: the socket of a service manager that gives it to a process once (launchd), for the daemons after the first.
const ACTIVATED: &str = "ACPD_ACTIVATED";

/// Number of the socket that was handed over without a word in the environment, which has one from now on.
fn activated() -> Option<RawFd> {
    let own = std::process::id();
    if let Some(number) = std::env::var(ACTIVATED).ok().and_then(|text| number_in(&text, own)) {
        return Some(number);
    }
    let socket = os::activated_socket(SOCKET)?;
    // As what systemd hands over.
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // Open for as long as the process is.
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

impl Manager {
    /// Looks for it in the environment, whose variables stay: the daemon that takes this one's place in the same process
    /// finds them again. To be called once, at the start of `main`, before there is a second thread.
    pub fn find() -> Manager {
        let given = sd_notify::listen_fds_with_names().ok();
        let given: Vec<_> = given.into_iter().flatten().collect();
        let named = given.iter().find(|(_, name)| name == SOCKET);
        // A single socket may be handed over without a name.
        let only = given.first().filter(|_| given.len() == 1);
        Manager {
            socket: named.or(only).map(|(number, _)| *number).or_else(activated),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Returns whether there is a service manager: it listens for the daemon, or waits for its notifications.
    pub fn is_there(&self) -> bool {
        self.socket.is_some() || std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// The socket that was handed over.
    pub fn socket(&self) -> io::Result<Option<Handed>> {
        self.socket.map(inherit::duplicate).transpose()
    }

    /// Leaves the socket to the daemon that takes this one's place.
    pub fn keep_socket(&self) {
        // Cannot fail for a number that worked at the start.
        let _ = self.socket.map(inherit::leave_number).transpose();
    }

    /// How often it wants a sign of life.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub fn tell(&self, news: News) -> io::Result<()> {
        sd_notify::notify(match news {
            News::Ready => &[NotifyState::Ready, NotifyState::Status("serving")],
            News::Alive => &[NotifyState::Watchdog],
            News::Restarting => &[NotifyState::Status("starting again")],
            News::Stopping => &[NotifyState::Stopping, NotifyState::Status("stopping")],
        })
    }
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
