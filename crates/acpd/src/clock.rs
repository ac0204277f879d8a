//! The clock of the hub, and waiting for a point in time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acpd_core::ids::Time;

/// A clock that shows the time of day and never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: u64,
    from: Instant,
}

impl Clock {
    /// Starts it at the time of day.
    pub fn start() -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: wall.as_millis() as u64, from: Instant::now() }
    }

    pub fn now(&self) -> Time {
        Time(self.wall + self.from.elapsed().as_millis() as u64)
    }

    /// When it will show this time, or a little after that.
    pub(crate) fn instant(&self, time: Time) -> tokio::time::Instant {
        let after = Duration::from_millis(time.0.saturating_sub(self.wall));
        // A millisecond begun is not over: round up, or the deadline is found a little too early.
        tokio::time::Instant::from_std(self.from + after + Duration::from_millis(1))
    }
}

/// Waits until then, or for ever.
pub(crate) async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
