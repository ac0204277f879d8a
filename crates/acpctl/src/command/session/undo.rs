//! `acpctl session undo`: brings deleted sessions back.

use acpd_api::{UndoParams, UndoResult, method};

use crate::door::Door;
use crate::error::Result;
use crate::expiry;
use crate::human;
use crate::text::text;
use crate::ui::Ui;

/// Brings one session back, and prints how many others can be.
pub(super) fn undo(params: &UndoParams, door: Door, ui: &mut Ui) -> Result {
    let result: UndoResult = door.connect()?.call(method::SESSION_UNDO, params)?;
    report(&result, ui);
    match result.kept {
        0 => {}
        1 => ui.say("1 more deleted session is kept: `acpctl session undo` again"),
        more => ui.say(text!(
            "{} more deleted sessions are kept: `acpctl session undo` again brings back the next, \
             `acpctl session undo --all` all of them",
            more
        )),
    }
    Ok(())
}

/// Brings all sessions back that match, the one that was deleted last first.
pub(super) fn undo_all(params: &UndoParams, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let mut count = 0_u64;
    loop {
        let result: UndoResult = connection.call(method::SESSION_UNDO, params)?;
        report(&result, ui);
        count += 1;
        if result.kept == 0 {
            break;
        }
    }
    ui.say(text!("brought back {}", human::counted(count, "session")));
    expiry::announce(&mut connection, ui);
    Ok(())
}

fn report(result: &UndoResult, ui: &mut Ui) {
    let session = &result.session;
    match &result.name_taken {
        Some(name) => ui.say(text!(
            "{} is back, without its name: another session has the name `{}` now",
            session.session_id,
            name
        )),
        None => ui.say(text!("{} is back", session.handle())),
    }
}
