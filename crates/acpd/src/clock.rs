//! The clock of the hub.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acpd_core::ids::Time;

/// A clock with the time of day that never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: u64,
    from: Instant,
}

impl Clock {
    pub fn start() -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: wall.as_millis() as u64, from: Instant::now() }
    }

    pub fn now(&self) -> Time {
        Time(self.wall + self.from.elapsed().as_millis() as u64)
    }

    /// Returns when the clock shows this time, or shortly after.
    pub(crate) fn instant(&self, time: Time) -> tokio::time::Instant {
        let after = Duration::from_millis(time.0.saturating_sub(self.wall));
        // Rounded up, or the deadline would be found too early.
        tokio::time::Instant::from_std(self.from + after + Duration::from_millis(1))
    }
}

pub(crate) async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
