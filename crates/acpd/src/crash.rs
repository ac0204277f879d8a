//! Points at which tests make the daemon die.
//!
//! With the feature `crash-points`, `ACPD_CRASH=NAME:N` kills the process when it comes to the point of
//! that name for the N-th time. Without the feature there are no such points.

/// Every point, in the order in which a turn comes by.
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

/// The point after each step of what is done for the journal while nothing is to be written.
const TIDIED: &str = "tidied";

/// Points on the way of a backup and of a restore, which are processes of their own.
pub const COPYING: [&str; 3] = ["copying", "copy-checked", "copy-kept"];

/// Dies here, if that was asked for.
#[cfg(not(feature = "crash-points"))]
#[inline]
pub(crate) fn point(name: &'static str) {
    debug_assert!(is_known(name), "{name} is no crash point");
}

/// Dies here, if that was asked for.
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
        // No handler, no destructor, no buffer is flushed.
        std::process::abort();
    }
}

/// Makes a panic end the process, as it does in a release: a daemon that lives on without one of its tasks
/// looks like one that hangs.
#[cfg(feature = "crash-points")]
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// Asked in builds that check such things.
fn is_known(name: &str) -> bool {
    name == TIDIED || POINTS.contains(&name) || COPYING.contains(&name)
}
