//! `acpctl doctor`: checks everything that acpd needs, and reports problems with fixes. Without
//! `--fix` it starts and changes nothing; `--fix` runs commands that end no turn.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use acpd_api::{ExitCode, Untrusted};
use acpd_client::Paths;
use clap::Args;
use serde::Serialize;

use crate::args::Json;
use crate::checks::{Finding, Health, look};
use crate::error::{CommandError, Result};
use crate::human;
use crate::programs::status_of;
use crate::text::{Role, Text, text};
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

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<Finding>,
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
    let report = Report { findings };
    ui.show(args.json.json, &report, card(&report))?;
    match report.findings.iter().filter(|found| found.state == Health::Problem).count() {
        0 => Ok(()),
        _ if args.json.json => Err(CommandError::printed()),
        count => {
            let text = human::counted(count, "problem");
            Err(CommandError::new(ExitCode::Error, text!("{} found", text)))
        }
    }
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

fn card(report: &Report) -> Text {
    let line = |found: &Finding| {
        let (style, word) = match found.state {
            Health::Ok => (Role::Good, "ok     "),
            Health::Warning => (Role::Warning, "warning"),
            Health::Problem => (Role::Bad, "problem"),
        };
        let gap = Text::repeated(" ", 13usize.saturating_sub(found.check.len()));
        let fix = found.fix.as_ref().map(|fix| {
            let fix = Text::styled(Role::Dim, text!("fix: {}", fix));
            text!("{}{}\n", Text::repeated(" ", 24), fix)
        });
        let said = Text::join(
            found.text.raw().lines().map(|line| Untrusted::from(line).verbatim().into()),
            "\n                        ",
        );
        text!("{}  {}{}  {}\n{}", Text::styled(style, word), found.check, gap, said, fix)
    };
    report.findings.iter().map(line).collect()
}
