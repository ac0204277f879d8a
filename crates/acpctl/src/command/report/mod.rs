//! `acpctl report`: a bug report without secrets, prompts and names.
//!
//! The content is chosen, not filtered: no word of a conversation and no value that a user or an
//! agent chose gets into a report ([`log`], `acpd config-redacted`). The result is then searched
//! for possible secrets and for names of the user and the machine ([`names`]).

mod log;
mod names;
mod parts;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use acpd_api::{Untrusted, redact};
use acpd_client::Paths;
use acpd_sys::files::private_options;
use clap::{Args, ValueHint};
use jiff::Timestamp;

use crate::confirm::{check_can_ask, confirm};
use crate::error::{CommandError, Result};
use crate::text::{Text, text};
use crate::ui::Ui;
use names::without_names;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
The report has versions, the system, the findings of `acpctl doctor`, the configured keys, the states of agents and \
sessions, the end of the daemon's log, and metrics. It has no conversations, no stderr of agents, no values of variables, \
headers or arguments, and no names of you, your machine, sessions or directories.";
    "acpctl report" => "Read it, then confirm to write it to a file here",
    "acpctl report --output - | less" => "Only read it",
))]
pub(super) struct Report {
    /// Write to this new file; `-` prints it [default: `acpd-report-TIME.md`].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Write it without showing it and without confirmation.
    #[arg(long)]
    yes: bool,
}

const DOING: &str = "writing a report";
const HINT: &str = "add `--yes`; `--output -` prints it";

pub(super) fn report(args: &Report, ui: &mut Ui) -> Result {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if !to_stdout && !args.yes {
        check_can_ask(ui, DOING, HINT)?;
    }
    let paths = Paths::discover()?;
    ui.spin("looking");
    let text = without_names(&redact::text(&parts::all(&paths)));
    ui.stop_spinning();
    let shown = Untrusted::from(text.as_str());
    if to_stdout {
        return Ok(ui.print(text!("{}", shown.prose()))?);
    }
    let file = args.output.clone().unwrap_or_else(file_name);
    if !args.yes {
        ui.page();
        ui.print(text!("{}", shown.prose()))?;
        ui.finish()?;
        let prompt = text!("write this to `{}`? y/n > ", file);
        confirm(ui, DOING, HINT, &Text::new(), prompt)?;
    }
    write(&file, &text)?;
    ui.done(text!("written to `{}`: read it again before you send it", file))
}

fn file_name() -> PathBuf {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    PathBuf::from(format!("acpd-report-{now}.md"))
}

/// Only the owner can read the file.
fn write(file: &Path, text: &str) -> Result {
    let failed = |error: io::Error| CommandError::file("write", file, &error);
    let new = private_options().write(true).create_new(true).open(file);
    match new {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(failed(error).hint("`--output FILE` names another one"))
        }
        new => new.and_then(|mut new| new.write_all(text.as_bytes())).map_err(failed),
    }
}
