//! Talks with the service manager: takes a socket that listens already, and tells that the daemon is alive.
//!
//! Without a service manager this module does nothing. The variables of the environment stay, so that a daemon
//! that takes this one's place in the same process finds them again; agents do not get them.

use acpd_sys::handover::{ServiceManager, ServiceState};
use acpd_sys::runtime::ListeningSocket;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The service manager, if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Manager(pub ServiceManager);

impl Manager {
    /// The socket that was handed over.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn socket(&self) -> Result<Option<ListeningSocket>, String> {
        let socket = self.0.socket();
        socket.map_err(|error| format!("cannot use the service manager's socket: {error}"))
    }

    /// Clients are let in.
    pub fn ready(&self) {
        self.tell(ServiceState::Ready);
    }

    /// The daemon ends, or makes room for the next one in the same process.
    pub fn stopping(&self, restart: bool) {
        self.tell(if restart { ServiceState::Restarting } else { ServiceState::Stopping });
    }

    /// The clock for signs of life; to be called on the runtime.
    pub fn pulse(&self) -> Pulse {
        let period =
            self.0.watchdog().map(|timeout| timeout / 2).filter(|period| !period.is_zero());
        let ticks = period.map(|period| {
            let mut ticks = interval_at(Instant::now() + period / 2, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Pulse { manager: *self, ticks, asked: false }
    }

    fn tell(&self, news: ServiceState) {
        if let Err(error) = self.0.report(news) {
            tracing::warn!(%error, "cannot reach the service manager");
        }
    }
}

/// Tells the service manager that the daemon is alive: only after a round through hub and store.
#[derive(Debug)]
pub struct Pulse {
    manager: Manager,
    ticks: Option<Interval>,
    /// A round is under way.
    asked: bool,
}

impl Pulse {
    /// Waits until the next round is due; for ever if the manager wants none, or one is under way.
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

    /// The store has reported, so a round that was asked for before is complete.
    pub fn beat(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.answer();
        }
    }

    /// Gives the sign of life.
    pub fn answer(&self) {
        if self.ticks.is_some() {
            self.manager.tell(ServiceState::Alive);
        }
    }
}
