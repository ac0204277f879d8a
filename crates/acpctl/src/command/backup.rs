//! `acpctl backup`: the journal in a file.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::Json;
use crate::error::Result;
use crate::programs::{contents, copy};
use crate::text::text;
use crate::ui::Ui;

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
    let report = copy([OsStr::new("backup"), args.file.as_os_str()], "copying", ui)?;
    if args.json.json {
        return Ok(ui.json(&report)?);
    }
    ui.done(text!("`{}` holds {}", report.file, contents(&report)))
}
