//! `acpctl session export`: a session for people, or for programs, printed while it is read.

use acpd_api::SessionInfo;
use serde_json::json;

use crate::cli::{Format, Which};
use crate::door::Door;
use crate::error::Result;
use crate::lookup::{Care, find};
use crate::transcript::collect::Item;
use crate::transcript::markdown::{self, Markdown, Part};
use crate::transcript::read;
use crate::ui::Ui;

/// Prints the session.
pub(super) fn export(session: &Which, format: Format, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let info = find(&mut connection, session, Care::Guess, ui)?;
    let mut printer = Printer::begin(format, &info, ui)?;
    read(&info, &mut connection, |item| printer.print(item, ui))?;
    printer.end(ui)
}

enum Printer {
    Json,
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
                Ok(Printer::Json)
            }
        }
    }

    fn print(&mut self, item: Item, ui: &mut Ui) -> Result {
        match self {
            Printer::Json => {
                ui.print(",\n")?;
                ui.json_item(&item.into_json())?;
            }
            Printer::Markdown(markdown) => {
                for part in markdown.item(item) {
                    match part {
                        Part::Ours(text) => ui.print(&text)?,
                        Part::Theirs(text) => ui.relay(&text)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn end(self, ui: &mut Ui) -> Result {
        match self {
            Printer::Json => Ok(ui.print("\n]\n")?),
            Printer::Markdown(_) => Ok(()),
        }
    }
}
