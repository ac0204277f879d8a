//! `acpctl backup`: the journal in a file.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::Json;
use crate::copying::{contents, run};
use crate::error::Result;
use crate::text::text;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
The file holds everything that agents and you have said, and tokens that clients gave for MCP servers: it is closed \
to others, and should stay so. A backup that is there under that name is replaced once the new one is whole.";
    "acpctl backup ~/acpd.backup" => "Write one file, in place of the one from before",
    "acpctl backup ~/acpd-\"$(date +%F)\".db" => "Keep one for each day",
))]
pub(super) struct Backup {
    /// Where to write it.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    json: Json,
}

/// Writes the journal into a file.
pub(super) fn backup(args: &Backup, ui: &mut Ui) -> Result {
    let report = run([OsStr::new("backup"), args.file.as_os_str()], "copying", ui)?;
    if args.json.json {
        return Ok(ui.json(&report)?);
    }
    ui.say(text!("`{}` holds {}", report.file, contents(&report)));
    Ok(())
}
