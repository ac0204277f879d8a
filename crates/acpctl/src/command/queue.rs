//! `acpctl queue`: prompts that wait for the running turn.

use std::io::{IsTerminal as _, read_to_string, stdin};

use acpd_api::{
    QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams, QueueStep, Untrusted, method,
};
use acpd_client::Connection;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::cli::{self, QueueCommand, Which};
use crate::door::Door;
use crate::editor::Edited;
use crate::error::{CommandError, Result};
use crate::human;
use crate::lookup::{Care, find};
use crate::paint::BOLD;
use crate::queued::summary;
use crate::table::{Cell, Table};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

/// What the others are told.
const BY: &str = "acpctl queue";

/// Shows, changes, moves or takes back what waits.
pub(super) fn queue(args: cli::Queue, door: Door, ui: &mut Ui) -> Result {
    match (args.command, args.which) {
        (Some(QueueCommand::Rm { which, numbers }), _) => {
            remove(&which, &numbers, &mut door.connect()?, ui)
        }
        (Some(QueueCommand::Edit { which, number, prompt }), _) => {
            edit(&which, number, &prompt, door, ui)
        }
        (Some(QueueCommand::Move { which, number, to }), _) => {
            put(&which, number, to.into(), &mut door.connect()?, ui)
        }
        (None, Some(which)) => show(&which, args.json.json, &mut door.connect()?, ui),
        (None, None) => Err(CommandError::usage("no session given")),
    }
}

fn show(which: &Which, json: bool, connection: &mut Connection, ui: &mut Ui) -> Result {
    let session = find(connection, which, Care::Guess, ui)?;
    let info: QueueInfo = connection.call(method::SESSION_QUEUE, &session.exactly())?;
    if json {
        return Ok(ui.json(&info)?);
    }
    if info.prompts.is_empty() {
        ui.say(text!("no prompt waits in {}", session.handle()));
        return Ok(());
    }
    Ok(ui.print(table(&info, ui))?)
}

fn table(info: &QueueInfo, ui: &Ui) -> Text {
    let now = human::now();
    let mut table = Table::new(["N", "SINCE", "PROMPT"]);
    for prompt in &info.prompts {
        table.row([
            Cell::new(text!("{}", prompt.ticket), BOLD),
            human::ago(prompt.at, now).into(),
            summary(prompt).into(),
        ]);
    }
    table.render(ui.out_paint(), ui.out_width())
}

fn remove(which: &Which, numbers: &[u64], connection: &mut Connection, ui: &mut Ui) -> Result {
    let session = find(connection, which, Care::Exact, ui)?;
    for ticket in numbers {
        let (session, by) = (session.exactly(), Some(BY.to_owned()));
        let params = QueueRemoveParams { session, ticket: *ticket, by };
        let _: QueueInfo = connection.call(method::SESSION_QUEUE_REMOVE, &params)?;
        ui.say(text!("took back prompt {}", *ticket));
    }
    Ok(())
}

/// Moves a prompt to another place among those that wait.
fn put(
    which: &Which,
    ticket: u64,
    to: QueueStep,
    connection: &mut Connection,
    ui: &mut Ui,
) -> Result {
    let session = find(connection, which, Care::Exact, ui)?;
    let (session, by) = (session.exactly(), Some(BY.to_owned()));
    let params = QueueMoveParams { session, ticket, to, by };
    let info: QueueInfo = connection.call(method::SESSION_QUEUE_MOVE, &params)?;
    Ok(ui.print(table(&info, ui))?)
}

/// Says something else in a prompt; its files and images stay.
fn edit(which: &Which, ticket: u64, words: &[String], door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let session = find(&mut connection, which, Care::Exact, ui)?;
    let info: QueueInfo = connection.call(method::SESSION_QUEUE, &session.exactly())?;
    let Some(before) = info.prompts.iter().find(|prompt| prompt.ticket == ticket) else {
        let text = text!("no prompt {} waits in {}", ticket, session.handle());
        let hint = text!("`acpctl queue {}` lists those that wait", shell_word(session.handle()));
        return Err(CommandError::usage(text).hint(hint));
    };
    // A person may take long.
    drop(connection);
    let (mut edited, (old, kept)) = (None, before.parts());
    let new = match words {
        [] if stdin().is_terminal() => &edited.insert(Edited::of(&old)?).text,
        [] => &read_to_string(stdin())?,
        words => &words.join(" "),
    };
    if new.trim().is_empty() {
        return Err(CommandError::usage("no prompt given").hint(text!(
            "to take the prompt back: `acpctl queue rm {} {}`",
            shell_word(session.handle()),
            ticket
        )));
    }
    if new.trim_end() == old.trim_end() {
        ui.say(text!("prompt {} stays as it is", ticket));
        return Ok(());
    }
    let text = [json!({"type": "text", "text": new.trim_end()})].into_iter();
    let prompt: Vec<Value> = text.chain(kept).collect();
    let params = QueueEditParams {
        session: session.exactly(),
        ticket,
        prompt: to_raw_value(&prompt).map_err(std::io::Error::from)?,
        by: Some(BY.to_owned()),
    };
    let changed = door.connect().and_then(|mut connection| {
        Ok(connection.call::<_, QueueInfo>(method::SESSION_QUEUE_EDIT, &params)?)
    });
    match (changed, edited) {
        (Ok(_), _) => ui.say(text!("changed prompt {}", ticket)),
        (Err(error), None) => return Err(error),
        (Err(error), Some(edited)) => {
            let path = Untrusted::from(edited.keep()?.to_string_lossy().into_owned());
            return Err(error.hint(text!("what you wrote is in {}", path)));
        }
    }
    Ok(())
}
