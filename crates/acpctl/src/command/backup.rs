//! `acpctl backup`: the journal in a file.

use std::ffi::OsStr;

use crate::cli;
use crate::copying::{contents, run};
use crate::error::Result;
use crate::text::text;
use crate::ui::Ui;

/// Writes the journal into a file.
pub(super) fn backup(args: &cli::Backup, ui: &mut Ui) -> Result {
    let report = run([OsStr::new("backup"), args.file.as_os_str()], "copying", ui)?;
    if args.json.json {
        return Ok(ui.json(&report)?);
    }
    ui.say(text!("`{}` holds {}", report.file, contents(&report)));
    Ok(())
}
