//! Reports the daemon's state to the service manager, if there is one.

use acpd_sys::handover::{ServiceManager, ServiceState};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) fn tell(manager: ServiceManager, state: ServiceState) {
    if let Err(error) = manager.report(state) {
        tracing::warn!(%error, "cannot reach the service manager");
    }
}

/// Signs of life for the service manager, each after a round through hub and store.
#[derive(Debug)]
pub struct Pulse {
    manager: ServiceManager,
    ticks: Option<Interval>,
    /// A round is in progress.
    pub asked: bool,
}

impl Pulse {
    /// Call it on the runtime.
    pub fn new(manager: ServiceManager) -> Pulse {
        let period = manager.watchdog().map(|timeout| timeout / 2);
        let ticks = period.filter(|period| !period.is_zero()).map(|period| {
            let mut ticks = interval_at(Instant::now() + period / 2, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Pulse { manager, ticks, asked: false }
    }

    /// Waits until the next round is due; for ever if the manager wants none, and during a round.
    pub async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) if !self.asked => {
                ticks.tick().await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Completes a round, because the store has reported.
    pub fn beat(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.answer();
        }
    }

    pub fn answer(&self) {
        if self.ticks.is_some() {
            tell(self.manager, ServiceState::Alive);
        }
    }
}
