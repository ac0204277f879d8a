//! `acpctl doctor`: checks everything that acpd needs, and reports problems with fixes. Without
//! `--fix` it starts and changes nothing; `--fix` runs commands that end no turn.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use acpd_api::Untrusted;
use acpd_client::Paths;
use clap::Args;

use crate::args::Json;
use crate::checks::{self, look};
use crate::error::{CommandError, Result};
use crate::programs::status_of;
use crate::text::text;
use crate::ui::Ui;

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = examples!(
    "acpctl doctor" => "List problems and how to fix them",
    "acpctl doctor --fix" => "Fix what interrupts no turn",
))]
pub(super) struct Doctor {
    /// Fix what needs no interrupted turn: reload the configuration, rewrite service files.
    #[arg(long)]
    fix: bool,
    #[command(flatten)]
    json: Json,
}

pub(super) fn doctor(args: Doctor, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let mut findings = look(&paths);
    if args.fix {
        for line in findings.iter().filter(|found| found.harmless).filter_map(|f| f.fix.as_ref()) {
            ui.say(text!("running `{}`", line));
            run(line)?;
        }
        findings = look(&paths);
    }
    checks::show(findings, args.json.json, ui)
}

/// Runs a command of acpctl. `line` is acpd's own text.
fn run(line: &Untrusted) -> Result {
    let exe =
        env::current_exe().map_err(|e| CommandError::file("find", Path::new("acpctl"), &e))?;
    let mut command = Command::new(&exe);
    command.args(line.raw().split(' ').skip(1)).stdin(Stdio::null()).stdout(Stdio::null());
    let status = status_of(&mut command)?;
    CommandError::printed_unless(status.success())
}
