//! What the developer commands do, and what they share with the tests in `tests/`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "programs for developers")]

pub mod bench;
pub mod coverage;
pub mod cross;
pub mod demo;
pub mod deny;
mod dice;
pub mod dist;
pub mod fuzz;
pub mod home;
pub mod install;
mod peer;
pub mod real;
pub mod soak;
pub mod test;
pub mod torture;
pub mod vendor;
pub mod workspace;

/// Whatever went wrong, in words for a developer.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;
