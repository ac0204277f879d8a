//! `acpctl session undo`: brings a deleted session back.

use acpd_api::{UndoParams, UndoResult, method};

use crate::door::Door;
use crate::error::Result;
use crate::text::text;
use crate::ui::Ui;

/// Brings it back, and tells what else can be.
pub(super) fn undo(params: &UndoParams, door: Door, ui: &mut Ui) -> Result {
    let result: UndoResult = door.connect()?.call(method::SESSION_UNDO, params)?;
    let session = &result.session;
    match &result.name_taken {
        Some(name) => ui.say(text!(
            "{} is back, without its name: another session has the name `{}` now",
            session.session_id,
            name
        )),
        None => ui.say(text!("{} is back", session.handle())),
    }
    match result.kept {
        0 => {}
        1 => ui.say("1 more deleted session is kept: `acpctl session undo` again"),
        more => ui.say(text!(
            "{} more deleted sessions are kept: `acpctl session undo` again brings back the next",
            more
        )),
    }
    Ok(())
}
