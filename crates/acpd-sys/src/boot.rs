//! The clock that goes on while the machine sleeps.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const BOOT: ClockId = ClockId::CLOCK_BOOTTIME;
/// Elsewhere this one goes on.
#[cfg(not(target_os = "linux"))]
const BOOT: ClockId = ClockId::CLOCK_MONOTONIC;

/// The time since the machine was started, asleep or not; zero if there is no such clock.
pub fn since_boot() -> Duration {
    clock_gettime(BOOT).map(Duration::from).unwrap_or_default()
}
