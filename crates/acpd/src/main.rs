//! The program `acpd`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps AI coding agents alive.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon in the foreground.
    Run,
    /// The agent `demo`: scripted, without login and network.
    #[command(hide = true)]
    ScriptedAgent,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run => match acpd::daemon::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                #[expect(clippy::print_stderr, reason = "the last word of the program")]
                {
                    eprintln!("error: {failure}");
                }
                ExitCode::FAILURE
            }
        },
        Command::ScriptedAgent => {
            use acpd_test::agent;
            agent::run(agent::Options::new(agent::Options::default_state()))
        }
    }
}
