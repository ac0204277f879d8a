//! `acpctl backup`: the journal in a file. `restore` runs the same kind of program.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use acpd_api::{CopyLine, CopyReport};
use clap::{Args, ValueHint};

use crate::args::Json;
use crate::error::Result;
use crate::text::{Text, text};
use crate::ui::Ui;
use crate::{human, programs};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
The file holds all conversations and the tokens that clients gave for MCP servers. Only you can read it; keep it so. \
An existing backup with this name is replaced when the new one is complete.";
    "acpctl backup ~/acpd.backup" => "Write one file, and replace the last one",
    "acpctl backup ~/acpd-\"$(date +%F)\".db" => "Keep one file per day",
))]
pub(super) struct Backup {
    /// The file to write.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    json: Json,
}

pub(super) fn backup(args: &Backup, ui: &mut Ui) -> Result {
    let report = run([OsStr::new("backup"), args.file.as_os_str()], "copying", ui)?;
    if args.json.json {
        return Ok(ui.json(&report)?);
    }
    ui.say(text!("`{}` holds {}", report.file, contents(&report)));
    Ok(())
}

/// Runs the daemon's program with these arguments to its end; it has printed itself why it failed.
pub(super) fn run<'a>(
    args: impl IntoIterator<Item = &'a OsStr>,
    doing: &'static str,
    ui: &mut Ui,
) -> Result<CopyReport> {
    let mut command = programs::daemon(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| programs::cannot_run(&command, &error))?;
    let failed = |error| programs::cannot_run(&command, &error);
    let mut done = None;
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        match serde_json::from_str(&line.map_err(failed)?) {
            Ok(CopyLine::Progress { done, of }) => {
                let percent = u64::from(done) * 100 / u64::from(of.max(1));
                ui.spin(text!("{} {} %", doing, percent));
                ui.tick();
            }
            Ok(CopyLine::Done(report)) => done = Some(report),
            Err(_) => {}
        }
    }
    let output = child.wait_with_output().map_err(failed)?;
    ui.stop_spinning();
    match done {
        Some(report) if output.status.success() => Ok(report),
        _ => Err(programs::failed(&command, &output)),
    }
}

/// Describes the content of a copy.
pub(super) fn contents(copy: &CopyReport) -> Text {
    let used = match copy.updated {
        Some(at) => text!(", last used {}", human::ago(at, human::now())),
        None => Text::new(),
    };
    text!("{}, {}{}", human::counted(copy.sessions, "session"), human::bytes(copy.bytes), used)
}
