//! `acpctl`: the command line of acpd.

#[macro_use]
mod manual;

mod args;
mod checks;
mod command;
mod confirm;
mod daemon;
mod default_agent;
mod dirs;
mod error;
mod explain;
mod form;
mod hosts;
mod human;
mod info;
mod install;
mod live;
mod log_file;
mod lookup;
mod machine;
mod permission;
mod programs;
mod prometheus;
mod render;
mod screen;
mod service;
mod settings;
mod suggest;
mod terminal;
mod text;
mod transcript;
mod ui;
mod user_programs;
mod watch;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic;
use std::process::ExitCode;

use acpd_api::Untrusted;
use clap::error::{ContextKind, ContextValue};
use error::{CommandError, ErrorKind};

fn main() -> ExitCode {
    panic::set_hook(Box::new(complain));
    command::complete_if_asked(command::definition);
    let cli = match typed() {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    let mut ui = ui::Ui::new(cli.global.color, !cli.global.no_spawn);
    let done = match command::dispatch(cli, &mut ui) {
        Err(error) if error.kind == ErrorKind::NotRunningThere && ui.may_start && ui.can_ask() => {
            start_and_repeat(error, &mut ui)
        }
        done => done,
    };
    // Flush also after an error: the printed part may be useful.
    let flushed = ui.finish().map_err(CommandError::from);
    // A reader that has enough closes stdout, which is no failure.
    let flushed = flushed
        .or_else(|error| if error.kind == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) });
    let code = match done.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => code,
        Err(error) => {
            let error = if ui.machine.is_none() { explain::explained(error) } else { error };
            ui.talk(&error.render());
            error.code()
        }
    };
    ExitCode::from(code.code())
}

fn typed() -> Result<command::Cli, clap::Error> {
    command::Cli::parse(std::env::args_os()).or_else(all_sessions).or_else(help_of_help)
}

/// Repeats a command, which has done nothing yet, if the user has the daemon started.
fn start_and_repeat(error: CommandError, ui: &mut ui::Ui) -> error::Result<acpd_api::ExitCode> {
    hosts::start_if_wanted(error, ui)?;
    match typed() {
        Ok(cli) => command::dispatch(cli, ui),
        Err(error) => Err(CommandError::usage(Untrusted::of(&error))),
    }
}

/// Runs `top` if a terminal gets no command.
fn all_sessions(error: clap::Error) -> Result<command::Cli, clap::Error> {
    #[cfg(feature = "tui")]
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && command::can_show_screen()
    {
        let args = std::env::args_os().chain(["top".into()]);
        return command::Cli::parse(args).map_err(|_| error);
    }
    Err(error)
}

/// Runs `help` for `help --help`.
fn help_of_help(error: clap::Error) -> Result<command::Cli, clap::Error> {
    let typed = error.get(ContextKind::InvalidSubcommand);
    let is_help = matches!(typed, Some(ContextValue::String(typed)) if ["--help", "-h"].contains(&typed.as_str()));
    if is_help { command::Cli::parse(["acpctl", "help"].map(Into::into)) } else { Err(error) }
}

/// Prints a panic, escaped, because it may quote input.
fn complain(panic: &panic::PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let text = match backtrace.status() {
        BacktraceStatus::Captured => format!("{panic}\n{backtrace}"),
        _ => panic.to_string(),
    };
    ui::complain(Untrusted::from(text).prose());
}

/// Prints help and version like clap, and errors escaped, because they quote the command line.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let failed = suggest::instead(error, command::definition).or_else(|| {
        match text.strip_prefix("error: ") {
            Some(text) => Some(CommandError::usage(Untrusted::from(text.trim_end()).prose())),
            // A reader that closed the pipe does not want the rest.
            None => error
                .print()
                .err()
                .map(CommandError::from)
                .filter(|it| it.kind != ErrorKind::BrokenPipe),
        }
    });
    let Some(failed) = failed else { return ExitCode::from(error.exit_code() as u8) };
    ui::Ui::new(args::When::Auto, false).talk(&failed.render());
    ExitCode::from(failed.code().code())
}
