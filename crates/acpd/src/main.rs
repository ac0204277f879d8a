//! The program `acpd`: the daemon and its helpers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use acpd::failure::Failure;
use acpd::login;
use acpd_api::{LOGIN_NOT_BEGUN, escape, json};
use clap::{CommandFactory as _, Parser, Subcommand};
use serde::Serialize;

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
    Run {
        /// Log to the daemon's file and not to stderr.
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Check that the daemon can start: directories, configuration, database.
    Check,
    /// Write the journal into a file, and print how far that is, as JSON.
    #[command(hide = true)]
    Backup {
        /// The file.
        file: PathBuf,
    },
    /// Put a backup in the journal's place, and print how far that is, as JSON.
    #[command(hide = true)]
    Restore {
        /// Only look what is in it.
        #[arg(long)]
        check: bool,
        /// The backup.
        file: PathBuf,
    },
    /// Print what is wrong in the configuration, as JSON.
    #[command(hide = true)]
    Config {
        /// Print the JSON schema of the file instead.
        #[arg(long)]
        schema: bool,
        /// Print what it comes to instead.
        #[arg(long, conflicts_with = "schema")]
        values: bool,
    },
    /// Print which keys of the configuration are set, without what may be a secret.
    #[command(hide = true)]
    ConfigRedacted,
    /// Ask the installed agents of the catalogue what they can do.
    #[command(hide = true)]
    Discover {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the environment to stdin, which is a pipe: for a daemon that asks a shell.
    #[command(hide = true)]
    Environment,
    /// List where the daemon can be made to die (`ACPD_CRASH=NAME:N`).
    #[cfg(feature = "crash-points")]
    #[command(hide = true)]
    CrashPoints,
    /// Become the program that logs an agent in.
    #[command(hide = true)]
    Login(login::Login),
    /// The agent `demo`: scripted, without login and network.
    #[command(hide = true)]
    ScriptedAgent,
    /// Write a manual page of each command into a folder.
    #[command(hide = true)]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    #[cfg(feature = "crash-points")]
    acpd::crash::abort_on_panic();
    // Before the command line is parsed properly: these processes should be small, and users do not
    // type them.
    match &std::env::args_os().collect::<Vec<_>>()[..] {
        [_, command, dir] if command == "shim" => return acpd_shim::run(Path::new(dir)),
        _ => {}
    }
    run(Cli::parse().command).unwrap_or_else(|failure| failed(&failure))
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run { background } => acpd::daemon::run(background)?,
        Command::Check => print(&acpd::check::run()?),
        Command::Config { schema: true, .. } => print(&format!("{:#}", acpd::config::schema())),
        Command::Config { values: true, .. } => print_json(&acpd::check::values()?),
        Command::Config { .. } => print_json(&acpd::check::report()?),
        Command::Backup { file } => acpd::copying::back_up(&file)?,
        Command::Restore { check, file } => acpd::copying::restore(&file, check)?,
        Command::ConfigRedacted => print(&acpd::check::redacted()?),
        Command::Login(login) => {
            failed(&login::run(login));
            return Ok(LOGIN_NOT_BEGUN.into());
        }
        #[cfg(feature = "crash-points")]
        Command::CrashPoints => print(&acpd::crash::POINTS.join("\n")),
        Command::Environment => acpd::login_shell::print()
            .map_err(|error| Failure::system("cannot report the environment", error))?,
        Command::Discover { json } => acpd::discover::run(json)
            .map_err(|error| Failure::system("cannot look for agents", error))?,
        Command::Man { dir } => clap_mangen::generate_to(Cli::command(), dir)
            .map_err(|error| Failure::system("cannot write the manual pages", error))?,
        Command::ScriptedAgent => {
            let state = acpd_demo::Options::default_state();
            return Ok(acpd_demo::run(acpd_demo::Options::new(state)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn print(text: &str) {
    println!("{}", text.trim_end());
}

fn print_json(found: &impl Serialize) {
    print(&json::line(found).unwrap_or_default());
}

/// Programs read the exit code, too.
#[expect(clippy::print_stderr, reason = "the last word of the program")]
fn failed(failure: &Failure) -> ExitCode {
    eprintln!("error: {}", escape::prose(&failure.to_string()));
    failure.code.code().into()
}
