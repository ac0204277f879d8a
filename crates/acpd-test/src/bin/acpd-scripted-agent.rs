//! The scripted agent as a program of its own, for tests.

use std::process::ExitCode;

use acpd_demo::Options;

fn main() -> ExitCode {
    acpd_demo::run(Options::from_args())
}
