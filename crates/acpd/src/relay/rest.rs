//! The rest of a daemon to which nothing happens: what it has in memory and does not need goes back to the system.
//!
//! ```text
//!  awake ── nothing for STILL ─▶ resting
//!    ▲                              │
//!    └──── something happens ───────┘
//! ```

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Length of the idle time; up to twice as long, since events do not look at the clock.
const STILL: Duration = Duration::from_secs(5);

pub(super) struct Rest {
    still: Duration,
    timer: Pin<Box<Sleep>>,
    /// Something has happened since the timer was set.
    disturbed: bool,
    resting: bool,
}

impl Rest {
    pub(super) fn new() -> Rest {
        Rest::after(STILL)
    }

    fn after(still: Duration) -> Rest {
        Rest { still, timer: Box::pin(sleep(still)), disturbed: false, resting: false }
    }

    pub(super) fn disturb(&mut self) {
        self.disturbed = true;
        if std::mem::take(&mut self.resting) {
            self.set_timer();
        }
    }

    /// Returns when a rest begins, once for each. Cancelled, it goes on where it was.
    pub(super) async fn begins(&mut self) {
        if self.resting {
            return std::future::pending().await;
        }
        self.timer.as_mut().await;
        while self.disturbed {
            self.set_timer();
            self.timer.as_mut().await;
        }
        self.resting = true;
    }

    fn set_timer(&mut self) {
        self.disturbed = false;
        self.timer.as_mut().reset(Instant::now() + self.still);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_rest_begins_once_when_nothing_has_happened_for_long_enough() {
        let since = Instant::now();
        let mut rest = Rest::after(SHORT);
        rest.begins().await;
        assert!(since.elapsed() >= SHORT);
        let mut again = Box::pin(rest.begins());
        let polled = poll_fn(|context| Poll::Ready(again.as_mut().poll(context))).await;
        assert!(polled.is_pending(), "it has begun already");
    }

    #[tokio::test]
    async fn what_happens_puts_it_off_and_ends_it() {
        let since = Instant::now();
        let mut rest = Rest::after(SHORT);
        rest.disturb();
        rest.begins().await;
        assert!(since.elapsed() >= SHORT * 2);
        let since = Instant::now();
        rest.disturb();
        rest.begins().await;
        assert!(since.elapsed() >= SHORT);
    }
}
