//! Talks with the service manager: takes a socket that listens already, and tells that the daemon is alive.
//!
//! Without a service manager this module does nothing. The variables of the environment stay, so that a daemon
//! that takes this one's place in the same process finds them again; agents do not get them.

use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use acpd_sys::inherit;
use sd_notify::NotifyState;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

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
    /// Looks for it in the environment.
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
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn socket(&self) -> Result<Option<OwnedFd>, String> {
        let socket = self.socket.map(inherit::duplicate).transpose();
        socket.map_err(|error| format!("cannot use the service manager's socket: {error}"))
    }

    /// Leaves the socket to the daemon that takes this one's place.
    pub fn keep_socket(&self) {
        // It cannot fail for a number that worked at the start.
        self.socket.map(inherit::leave_number).transpose().ok();
    }

    /// Clients are let in.
    pub fn ready(&self) {
        notify(&[NotifyState::Ready, NotifyState::Status("serving")]);
    }

    /// The daemon ends, or makes room for the next one in the same process.
    pub fn stopping(&self, restart: bool) {
        if restart {
            notify(&[NotifyState::Status("starting again")]);
        } else {
            notify(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
        }
    }

    /// The clock for signs of life; to be called on the runtime.
    pub fn pulse(&self) -> Pulse {
        let period = self.watchdog.map(|timeout| timeout / 2).filter(|period| !period.is_zero());
        let ticks = period.map(|period| {
            let mut ticks = interval_at(Instant::now() + period / 2, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Pulse { ticks, asked: false }
    }
}

/// Tells the service manager that the daemon is alive: only after a round through hub and store.
#[derive(Debug)]
pub struct Pulse {
    ticks: Option<Interval>,
    /// A round is under way.
    asked: bool,
}

impl Pulse {
    /// Waits until the next round is due; for ever if nobody wants one, or one is under way.
    pub async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) if !self.asked => {
                ticks.tick().await;
            }
            _ => std::future::pending().await,
        }
    }

    /// A round was started.
    pub fn asked(&mut self) {
        self.asked = true;
    }

    /// The store has said something, so whatever was asked before went round.
    pub fn beat(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.answer();
        }
    }

    /// Gives the sign of life.
    pub fn answer(&self) {
        if self.ticks.is_some() {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot reach the service manager");
    }
}
