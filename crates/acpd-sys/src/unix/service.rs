//! The service manager: what it has handed over, and what it is told.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::door::Handed;
use crate::inherit;

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

impl Manager {
    /// Looks for it in the environment, whose variables stay: the daemon that takes this one's place in the same process
    /// finds them again.
    pub fn find() -> Manager {
        let given = sd_notify::listen_fds_with_names().ok();
        let given: Vec<_> = given.into_iter().flatten().collect();
        let named = given.iter().find(|(_, name)| name == SOCKET);
        // Who hands over a single socket need not name it.
        let only = given.first().filter(|_| given.len() == 1);
        Manager {
            socket: named.or(only).map(|(number, _)| *number),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Whether there is one: it listens for the daemon, or waits for its word.
    pub fn is_there(&self) -> bool {
        self.socket.is_some() || std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// The socket that was handed over.
    pub fn socket(&self) -> io::Result<Option<Handed>> {
        self.socket.map(inherit::duplicate).transpose()
    }

    /// Leaves the socket to the daemon that takes this one's place.
    pub fn keep_socket(&self) {
        // It cannot fail for a number that worked at the start.
        let _ = self.socket.map(inherit::leave_number).transpose();
    }

    /// How often it wants a sign of life.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells it something.
    pub fn tell(&self, news: News) -> io::Result<()> {
        sd_notify::notify(match news {
            News::Ready => &[NotifyState::Ready, NotifyState::Status("serving")],
            News::Alive => &[NotifyState::Watchdog],
            News::Restarting => &[NotifyState::Status("starting again")],
            News::Stopping => &[NotifyState::Stopping, NotifyState::Status("stopping")],
        })
    }
}
