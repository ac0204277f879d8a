//! `acpctl session undo`: brings deleted sessions back.

use acpd_api::{UndoParams, UndoResult, method};
use clap::Args;

use crate::door::Door;
use crate::error::Result;
use crate::expiry;
use crate::text::text;
use crate::ui::Ui;
use crate::{human, when};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session undo" => "Bring back what was deleted last",
    "acpctl session undo main" => "Bring back the session `main`",
    "acpctl session undo --all --since 1h" => "Bring back all that was deleted in the last hour",
))]
pub(in crate::command) struct Undo {
    /// Its name, its id or the beginning of that [default: the one that was deleted last].
    session: Option<String>,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Bring all deleted sessions back.
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Only sessions that were deleted since then: 2h, 09:30, 2026-11-22, or '2026-11-22 09:30'.
    #[arg(long, value_name = "TIME", value_parser = when::time, requires = "all")]
    since: Option<u64>,
}

/// Brings sessions back.
pub(super) fn undo(args: Undo, door: Door, ui: &mut Ui) -> Result {
    let Undo { session, agent, all, since } = args;
    let params = UndoParams { session, agent, since };
    if all { undo_all(&params, door, ui) } else { undo_one(&params, door, ui) }
}

/// Brings one session back, and prints how many others can be.
fn undo_one(params: &UndoParams, door: Door, ui: &mut Ui) -> Result {
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
fn undo_all(params: &UndoParams, door: Door, ui: &mut Ui) -> Result {
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
