//! The hostile agent as a program, for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    acpd_test::hostile::run(std::env::args().any(|arg| arg == "--broken"))
}
