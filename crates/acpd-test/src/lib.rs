//! The common part of the tests of acpd: homes with the real programs, the simulator of the hub,
//! the kill loop and the soak, fuzzers, and a hostile agent. The scripted agent is `acpd-demo`; its
//! program for tests is in here.

#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(all(feature = "harness", target_os = "linux"))]
pub mod harness;
#[cfg(all(feature = "torture", unix))]
pub mod home;
pub mod hostile;
#[cfg(all(feature = "torture", unix))]
pub mod peer;
#[cfg(any(all(feature = "harness", target_os = "linux"), all(feature = "torture", unix)))]
pub mod process;
pub mod rng;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(all(feature = "torture", unix))]
pub mod soak;
#[cfg(all(feature = "torture", unix))]
pub mod torture;

/// Locks data also after a thread has panicked.
#[cfg(any(feature = "harness", feature = "torture"))]
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
