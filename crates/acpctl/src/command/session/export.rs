//! `acpctl session export`: a session for people, or for programs, printed while it is read.

use acpd_api::SessionInfo;
use acpd_view::Turn;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::door::Door;
use crate::error::Result;
use crate::lookup::{Care, Which, WhichOrLast, find};
use crate::transcript::items::{self, items};
use crate::transcript::markdown::{self, Markdown, Part};
use crate::transcript::read;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
JSON is one array. Each item has `type` and, except the first, `seq`: its first line in the journal.

  session       the session, as `session show --json` prints it
  user          content: prompt of the user, in content blocks of ACP
  agent         content: answer of the agent
  thought       content: thought of the agent
  tool_call     toolCallId, title, kind, status, locations, content, rawInput, rawOutput, as in ACP
  plan          entries: the last plan, as in ACP; at the end
  turn_started  turn, at
  turn_ended    turn, at, outcome, usage (tokens and cost, if the agent reported them)
  restored      level, at, reason
  notice        severity, text
  skipped       bytes, limit

The last five are notices of acpd without their sessionId. More types may be added.";
    "acpctl session export main > main.md" => "Write a transcript to a file",
    "acpctl session export main --json | jq '.[].type'" => "Process it with another program",
))]
pub(in crate::command) struct Export {
    #[command(flatten)]
    which: WhichOrLast,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// A format of `session export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A transcript in Markdown.
    Md,
    /// Everything as one array.
    Json,
}

pub(super) fn export(args: &Export, door: Door, ui: &mut Ui) -> Result {
    let format = if args.json { Format::Json } else { args.format };
    let mut connection = door.connect()?;
    let info = find(&mut connection, &Which::from(&args.which), Care::Guess, ui)?;
    let mut printer = Printer::begin(format, &info, ui)?;
    read(&info, 0, &mut connection, |turn| printer.print(&turn, ui))?;
    printer.end(ui)
}

enum Printer {
    Json {
        /// The item of the last plan.
        plan: Option<Value>,
    },
    Markdown(Markdown),
}

impl Printer {
    fn begin(format: Format, info: &SessionInfo, ui: &mut Ui) -> Result<Printer> {
        match format {
            Format::Md => {
                let markdown = Markdown::new(&info.agent);
                ui.print(markdown::head(info))?;
                Ok(Printer::Markdown(markdown))
            }
            Format::Json => {
                let mut first = json!(info);
                first["type"] = json!("session");
                ui.print("[\n")?;
                ui.json_item(&first)?;
                Ok(Printer::Json { plan: None })
            }
        }
    }

    fn print(&mut self, turn: &Turn, ui: &mut Ui) -> Result {
        match self {
            Printer::Json { plan } => {
                for item in items(turn) {
                    ui.print(",\n")?;
                    ui.json_item(&item)?;
                }
                *plan = turn.blocks.iter().rev().find_map(items::plan).or(plan.take());
            }
            Printer::Markdown(markdown) => relay(markdown.turn(turn), ui)?,
        }
        Ok(())
    }

    fn end(self, ui: &mut Ui) -> Result {
        match self {
            Printer::Json { plan } => {
                if let Some(plan) = plan {
                    ui.print(",\n")?;
                    ui.json_item(&plan)?;
                }
                Ok(ui.print("\n]\n")?)
            }
            Printer::Markdown(mut markdown) => relay(markdown.end(), ui),
        }
    }
}

fn relay(parts: impl IntoIterator<Item = Part>, ui: &mut Ui) -> Result {
    for part in parts {
        match part {
            Part::Ours(text) => ui.print(&text)?,
            Part::Theirs(text) => ui.relay(&text)?,
        }
    }
    Ok(())
}
