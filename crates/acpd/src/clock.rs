//! The clock of the hub, and times in which it stands still.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acpd_core::ids::Time;
use acpd_sys::machine::since_boot;

/// Largest difference between two clocks that is ignored.
const JITTER: Duration = Duration::from_secs(1);

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

/// Notices that the machine was suspended: process clocks stand still then, but credentials expire.
#[derive(Debug)]
pub struct SuspendWatch {
    awake: Instant,
    boot: Duration,
    slept: Duration,
}

impl SuspendWatch {
    pub fn start() -> SuspendWatch {
        SuspendWatch { awake: Instant::now(), boot: since_boot(), slept: Duration::ZERO }
    }

    /// Returns how long the machine slept since the last call; `None` if it did not.
    pub fn news(&mut self) -> Option<Duration> {
        self.read(self.awake.elapsed(), since_boot().saturating_sub(self.boot))
    }

    fn read(&mut self, awake: Duration, passed: Duration) -> Option<Duration> {
        let news = passed.saturating_sub(awake).saturating_sub(self.slept);
        if news < JITTER {
            return None;
        }
        self.slept += news;
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sleep_is_told_once_and_jitter_is_none() {
        let seconds = Duration::from_secs;
        let mut watch = SuspendWatch::start();
        assert_eq!(watch.read(seconds(5), seconds(5) + Duration::from_millis(20)), None);
        assert_eq!(watch.read(seconds(6), seconds(606)), Some(seconds(600)));
        assert_eq!(watch.read(seconds(9), seconds(609)), None);
        assert_eq!(watch.read(seconds(10), seconds(670)), Some(seconds(60)));
    }
}
