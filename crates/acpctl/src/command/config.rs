//! `acpctl config …`. Only the daemon's program understands the file: `acpd config` is asked.

use std::fs;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};

use acpd_api::{ConfigReport, Empty, ExitCode, Status, Untrusted, method};
use acpd_client::{Paths, daemon_exe, open_file};

use crate::cli::Config;
use crate::confirm::yes;
use crate::editor;
use crate::error::{CommandError, Result};
use crate::human::counted;
use crate::info::daemon::mistakes;
use crate::stop::running;
use crate::text::text;
use crate::ui::Ui;

/// Far more than a person writes, in bytes.
const LONGEST: u64 = 4 << 20;

/// Runs a `config` command.
pub(super) fn config(command: &Config, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let file = paths.config_file();
    match command {
        Config::Path => Ok(ui.relay_line(&Untrusted::of(file.display()))?),
        Config::Show => {
            let failed = |error: io::Error| CommandError::file("read", &file, &error);
            let mut bytes = Vec::new();
            match open_file(&file) {
                Ok(open) => open.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    ui.say(text!("there is no `{}`: everything has its default", file));
                    return Ok(());
                }
                Err(error) => return Err(failed(error)),
            };
            Ok(ui.relay_bytes(&bytes)?)
        }
        Config::Check(json) => {
            let report = report()?;
            if json.json {
                ui.json(&report)?;
                return if report.mistakes.is_empty() { Ok(()) } else { Err(CommandError::told()) };
            }
            told(&report, ui)
        }
        Config::Edit => {
            let failed = |error: io::Error| CommandError::file("make", &paths.config, &error);
            fs::create_dir_all(&paths.config).map_err(failed)?;
            loop {
                editor::edit(&file)?;
                match told(&report()?, ui) {
                    Err(error) if ui.can_ask() => ui.talk(&error.render(ui.err_paint())),
                    told => {
                        told?;
                        return offer_reload(&paths, ui);
                    }
                }
                if !yes(ui, "edit it again? y/n > ")? {
                    return Err(CommandError::told());
                }
            }
        }
    }
}

/// What the daemon's program finds in the file.
fn report() -> Result<ConfigReport> {
    let exe = daemon_exe();
    let mut command = Command::new(&exe);
    let output = command.arg("config").stdin(Stdio::null()).output();
    let output = output.map_err(|error| CommandError::file("run", &exe, &error))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = Untrusted::from(String::from_utf8_lossy(&output.stderr));
        CommandError::new(ExitCode::Error, text!("`{} config` failed: {}", exe, said))
            .hint("acpctl and acpd may differ in version: install both again")
    })
}

/// Says that nothing is wrong, or fails with what is.
fn told(report: &ConfigReport, ui: &mut Ui) -> Result {
    if report.mistakes.is_empty() {
        ui.say(if report.exists {
            text!("`{}` has no mistakes", report.file)
        } else {
            text!("there is no `{}`: everything has its default", report.file)
        });
        return Ok(());
    }
    let count = counted(report.mistakes.len() as u64, "mistake");
    let text = text!("the configuration has {}:{}", count, mistakes(&report.mistakes));
    Err(CommandError::new(ExitCode::Error, text))
}

/// A daemon that runs does not look at the file by itself.
fn offer_reload(paths: &Paths, ui: &mut Ui) -> Result {
    let Some(mut connection) = running(paths)? else { return Ok(()) };
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    if status.daemon.config_changed.is_some() {
        ui.say("acpd does not use it yet: run `acpctl daemon reload`");
    }
    Ok(())
}
