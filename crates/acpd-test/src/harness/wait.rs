use std::thread;
use std::time::{Duration, Instant};

/// Limit for any wait of a test. Generous: only a failing test reaches it.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// Longest time for a process to end after its goodbye.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// Calls `look` until it returns something.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, look).unwrap_or_else(|| panic!("waited {DEADLINE:?} in vain for {what}"))
}

/// Like [`until`], with another deadline; `None` when it has passed.
pub(super) fn within<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
