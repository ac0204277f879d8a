//! What the tests of acpd have in common: homes in which the real programs run, the simulator of the hub,
//! fuzzers, and a hostile agent. The scripted agent is `acpd-demo`; its program for tests is in here.

#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(all(feature = "harness", target_os = "linux"))]
pub mod harness;
pub mod hostile;
#[cfg(feature = "sim")]
pub mod sim;
