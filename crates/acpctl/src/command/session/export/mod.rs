//! `acpctl session export`: a session for people, or for programs.
//!
//! The journal is read page by page and printed on the way: only one page and the unfinished items are in
//! memory.

mod collect;
mod markdown;

use acpd_api::{LogParams, LogResult, SessionInfo, method};
use serde_json::json;

use crate::cli::{Format, Which};
use crate::door::Door;
use crate::error::Result;
use crate::lookup::{Care, exactly, find};
use crate::ui::Ui;
use collect::{Collector, Item};
use markdown::{Markdown, Part};

/// Prints the session.
pub(super) fn export(session: &Which, format: Format, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let info = find(&mut connection, session, Care::Guess, ui)?;
    let mut printer = Printer::begin(format, &info, ui)?;
    let mut collector = Collector::of(&info.session_id);
    let mut params = LogParams { session: exactly(&info), after: 0, limit: None };
    loop {
        let page: LogResult = connection.call(method::SESSION_LOG, &params)?;
        for entry in page.entries {
            for item in collector.line(entry.seq, entry.line.get()) {
                printer.print(item, ui)?;
            }
        }
        match page.next {
            Some(next) => params.after = next,
            None => break,
        }
    }
    for item in collector.end() {
        printer.print(item, ui)?;
    }
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
