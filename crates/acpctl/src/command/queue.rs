//! `acpctl queue`: prompts that wait for the running turn.

use std::io::{IsTerminal as _, Read as _, stdin};

use acpd_api::{QueueEditParams, QueueInfo, QueueRemoveParams, method};
use acpd_client::Connection;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::cli::{self, QueueCommand, Which};
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::handle;
use crate::lookup::{Care, exactly, find};
use crate::paint::BOLD;
use crate::queued::{blocks, summary};
use crate::table::{Cell, Table};
use crate::text::text;
use crate::ui::Ui;

/// What the others are told.
const BY: &str = "acpctl queue";

/// Shows, changes or takes back what waits.
pub(super) fn queue(args: cli::Queue, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    match (args.command, args.which) {
        (Some(QueueCommand::Rm { which, numbers }), _) => {
            remove(&which, &numbers, &mut connection, ui)
        }
        (Some(QueueCommand::Edit { which, number, prompt }), _) => {
            edit(&which, number, &prompt, &mut connection, ui)
        }
        (None, Some(which)) => show(&which, args.json.json, &mut connection, ui),
        (None, None) => Err(CommandError::usage("no session given")),
    }
}

fn show(which: &Which, json: bool, connection: &mut Connection, ui: &mut Ui) -> Result {
    let session = find(connection, which, Care::Guess, ui)?;
    let info: QueueInfo = connection.call(method::SESSION_QUEUE, &exactly(&session))?;
    if json {
        return Ok(ui.json(&info)?);
    }
    if info.prompts.is_empty() {
        ui.say(text!("no prompt waits in {}", handle(&session)));
        return Ok(());
    }
    let now = human::now();
    let mut table = Table::new(["N", "SINCE", "PROMPT"]);
    for prompt in &info.prompts {
        table.row([
            Cell::new(text!("{}", prompt.ticket), BOLD),
            human::ago(prompt.at, now).into(),
            summary(prompt).into(),
        ]);
    }
    Ok(ui.print(table.render(ui.out_paint(), ui.out_width()))?)
}

fn remove(which: &Which, numbers: &[u64], connection: &mut Connection, ui: &mut Ui) -> Result {
    let session = find(connection, which, Care::Exact, ui)?;
    for ticket in numbers {
        let (session, by) = (exactly(&session), Some(BY.to_owned()));
        let params = QueueRemoveParams { session, ticket: *ticket, by };
        let _: QueueInfo = connection.call(method::SESSION_QUEUE_REMOVE, &params)?;
        ui.say(text!("took back prompt {}", *ticket));
    }
    Ok(())
}

/// Says something else in a prompt; its files and images stay.
fn edit(
    which: &Which,
    ticket: u64,
    words: &[String],
    connection: &mut Connection,
    ui: &mut Ui,
) -> Result {
    let words = match words {
        [] if stdin().is_terminal() => return Err(CommandError::usage("no prompt given")),
        [] => {
            let mut text = String::new();
            stdin().read_to_string(&mut text)?;
            text
        }
        words => words.join(" "),
    };
    if words.trim().is_empty() {
        return Err(CommandError::usage("no prompt given"));
    }
    let session = find(connection, which, Care::Exact, ui)?;
    let info: QueueInfo = connection.call(method::SESSION_QUEUE, &exactly(&session))?;
    let before = info.prompts.iter().find(|prompt| prompt.ticket == ticket);
    let kept = before.map(blocks).unwrap_or_default().into_iter();
    let said = [json!({"type": "text", "text": words})].into_iter();
    let prompt: Vec<Value> = said.chain(kept.filter(|block| block["type"] != "text")).collect();
    let params = QueueEditParams {
        session: exactly(&session),
        ticket,
        prompt: to_raw_value(&prompt).map_err(std::io::Error::from)?,
        by: Some(BY.to_owned()),
    };
    let _: QueueInfo = connection.call(method::SESSION_QUEUE_EDIT, &params)?;
    ui.say(text!("changed prompt {}", ticket));
    Ok(())
}
