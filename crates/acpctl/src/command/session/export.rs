//! `acpctl session export`: a session for people, or for programs, printed while it is read.

use acpd_api::SessionInfo;
use acpd_view::Turn;
use serde_json::{Value, json};

use crate::cli::{Format, Which};
use crate::door::Door;
use crate::error::Result;
use crate::lookup::{Care, find};
use crate::transcript::items::{self, items};
use crate::transcript::markdown::{self, Markdown, Part};
use crate::transcript::read;
use crate::ui::Ui;

pub(super) fn export(session: &Which, format: Format, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let info = find(&mut connection, session, Care::Guess, ui)?;
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
