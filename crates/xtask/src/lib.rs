//! The developer commands, and their common part with the tests in `tests/`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "programs for developers")]

pub mod bench;
pub mod cross;
pub mod demo;
pub mod deny;
pub mod dist;
pub mod fuzz;
#[cfg(target_os = "linux")]
pub mod hosts;
pub mod install;
pub mod real;
pub mod test;
pub mod torture;
pub mod vendor;
pub mod workspace;

pub use acpd_test::home::{self, Result};
