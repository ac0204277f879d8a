//! The clock that goes on while the machine sleeps.

use std::time::Duration;

use crate::os;

/// The time since the machine was started, asleep or not; zero if there is no such clock.
pub fn since_boot() -> Duration {
    os::since_boot()
}
