//! `acpctl config …`: the file, its values and mistakes.

mod show;

use std::fs;
use std::io::{self, Read as _};

use acpd_api::{ConfigReport, ExitCode, Untrusted};
use acpd_client::{Paths, open_file};
use clap::Subcommand;

use crate::args::Json;
use crate::configured::{self, BEGIN, SCHEMA, offer_schema};
use crate::confirm::yes;
use crate::daemon::{info, running};
use crate::error::{CommandError, Result};
use crate::human::counted;
use crate::info::daemon::mistakes;
use crate::text::text;
use crate::ui::Ui;
use crate::user_programs;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Config {
    /// List all mistakes; exits with 1 if there is one.
    #[command(after_long_help = examples!(
        "acpctl config check" => "Find mistakes before the daemon reads the file",
    ))]
    Check(Json),
    /// Show effective values and where they come from: the file, the catalogue or the default.
    ///
    /// Without a key, agents that the file does not mention are left out. Possible secrets are hidden.
    #[command(after_long_help = examples!(
        "acpctl config show agents.claude" => "Show the values of an agent and their sources",
        "acpctl config show daemon.log_level --json" => "Print one value as JSON",
        "acpctl config show --file" => "Print the file as it is",
    ))]
    Show(show::ConfigShow),
    /// Print the path of the file.
    #[command(after_long_help = examples!(
        "cat \"$(acpctl config path)\"" => "Use the file in a command",
    ))]
    Path,
    /// Open the file in $VISUAL or $EDITOR, then check it.
    ///
    /// A new file starts with a link to its schema, for editors that know TOML.
    #[command(after_long_help = examples!(
        "acpctl config edit" => "Edit the file; mistakes are listed",
    ))]
    Edit,
    /// Print the JSON schema of the file, for editors.
    #[command(after_long_help = examples!(
        "acpctl config schema > ~/.config/acpd/config.schema.json" =>
            "Let an editor check the file",
    ))]
    Schema,
}

const MAX_FILE_BYTES: u64 = 4 << 20;

pub(super) fn config(command: &Config, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let file = paths.config_file();
    match command {
        Config::Path => Ok(ui.relay_line(&Untrusted::of(file.display()))?),
        Config::Show(wanted) if !wanted.file => {
            let found = configured::values().or_else(|error| {
                // Only a valid configuration has values; mistakes are printed in full.
                fail_on_mistakes(&configured::report()?)?;
                Err(error)
            })?;
            show::show(found, wanted, ui)
        }
        Config::Show(_) => {
            let failed = |error: io::Error| CommandError::file("read", &file, &error);
            let mut bytes = Vec::new();
            match open_file(&file) {
                Ok(open) => open.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return ui.done(text!("`{}` does not exist: all values are defaults", file));
                }
                Err(error) => return Err(failed(error)),
            };
            Ok(ui.relay_bytes(&bytes)?)
        }
        Config::Schema => Ok(ui.relay_bytes(&configured::schema()?)?),
        Config::Check(json) => {
            let report = configured::report()?;
            if json.json {
                ui.json(&report)?;
                return CommandError::printed_unless(report.mistakes.is_empty());
            }
            report_mistakes(&report, ui)
        }
        Config::Edit => {
            let failed = |error: io::Error| CommandError::file("make", &paths.config, &error);
            fs::create_dir_all(&paths.config).map_err(failed)?;
            let begun = !file.exists();
            if begun {
                fs::write(&file, BEGIN).map_err(failed)?;
            }
            offer_schema(&file, &paths.config.join(SCHEMA));
            loop {
                user_programs::edit(&file)?;
                if begun && fs::read_to_string(&file).is_ok_and(|text| text == BEGIN) {
                    fs::remove_file(&file).and(fs::remove_file(paths.config.join(SCHEMA))).ok();
                }
                match report_mistakes(&configured::report()?, ui) {
                    Err(error) if ui.can_ask() => ui.talk(&error.render()),
                    checked => {
                        checked?;
                        // A running daemon does not read the changed file by itself.
                        let Some(mut connection) = running(&paths)? else { return Ok(()) };
                        if info(&mut connection)?.config_changed.is_some() {
                            ui.say("acpd does not use it yet. Reload: `acpctl daemon reload`");
                        }
                        return Ok(());
                    }
                }
                if !yes(ui, "edit it again? y/n > ")? {
                    return Err(CommandError::printed());
                }
            }
        }
    }
}

fn report_mistakes(report: &ConfigReport, ui: &mut Ui) -> Result {
    fail_on_mistakes(report)?;
    ui.done(if report.exists {
        text!("`{}` has no mistakes", report.file)
    } else {
        text!("`{}` does not exist: all values are defaults", report.file)
    })
}

fn fail_on_mistakes(report: &ConfigReport) -> Result {
    if report.mistakes.is_empty() {
        return Ok(());
    }
    let count = counted(report.mistakes.len(), "mistake");
    let text = text!("the configuration has {}:{}", count, mistakes(&report.mistakes));
    Err(CommandError::new(ExitCode::Error, text))
}
