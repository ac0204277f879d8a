//! `acpctl`: the command line of acpd.

mod cli;
mod command;
mod error;
mod human;
mod live;
mod paint;
mod render;
mod screen;
mod settings;
mod signal;
mod table;
mod terminal;
mod ui;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let mut ui = ui::Ui::new(cli.global.color);
    let done = command::dispatch(cli, &mut ui);
    // Also after an error: what was printed is worth having.
    let flushed = ui.finish().map_err(error::CommandError::from);
    let code = match done.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => code,
        Err(error) => {
            ui.talk(&error.render(ui.err_paint()));
            error.code()
        }
    };
    ExitCode::from(code.code())
}
