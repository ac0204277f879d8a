//! The scripted agent as a program of its own, for tests.

use std::io::Write as _;
use std::process::ExitCode;

use acpd_demo::{Options, help};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        let _ = std::io::stdout().write_all(help().as_bytes());
        return ExitCode::SUCCESS;
    }
    match Options::from_args(args) {
        Ok(options) => acpd_demo::run(options),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "acpd-scripted-agent: {error}; see --help");
            ExitCode::from(2)
        }
    }
}
