//! Points at which tests kill the daemon.
//!
//! With the feature `crash-points`, `ACPD_CRASH=NAME:N` kills the process when it reaches the point
//! NAME for the N-th time.

/// All points, in the order of a turn.
pub const POINTS: [&str; 16] = [
    "locked",
    "recovered",
    "before-hello",
    "after-hello",
    "listening",
    "before-spawn",
    "after-spawn",
    "before-commit",
    "after-commit",
    "between-effects",
    "host-write",
    "before-output",
    "before-ack",
    "before-forget",
    "after-forget",
    "before-exec",
];

/// After each step of work on the journal in idle times.
const TIDIED: &str = "tidied";

/// Points of a backup and a restore, which have their own processes.
pub const COPYING: [&str; 3] = ["copying", "copy-checked", "copy-kept"];

#[cfg(not(feature = "crash-points"))]
#[inline]
pub(crate) fn point(name: &'static str) {
    debug_assert!(is_known(name), "{name} is no crash point");
}

/// Dies here if `ACPD_CRASH` says so.
#[cfg(feature = "crash-points")]
pub(crate) fn point(name: &'static str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let wanted = std::env::var("ACPD_CRASH").ok()?;
        let (name, count) = wanted.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    static SEEN: AtomicU64 = AtomicU64::new(0);
    debug_assert!(is_known(name), "{name} is no crash point");
    if let Some((wanted, count)) = &*WANTED
        && wanted == name
        && SEEN.fetch_add(1, Ordering::Relaxed) + 1 == *count
    {
        // Runs no handler and no destructor, and flushes no buffer.
        std::process::abort();
    }
}

/// Makes a panic end the process, as in a release: a daemon without one of its tasks seems to hang.
#[cfg(feature = "crash-points")]
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

fn is_known(name: &str) -> bool {
    name == TIDIED || POINTS.contains(&name) || COPYING.contains(&name)
}
