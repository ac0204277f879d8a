//! `acpctl session undo`: restores deleted sessions.

use acpd_api::{UndoParams, UndoResult, method};
use clap::Args;

use crate::daemon::announce_expiry;
use crate::error::Result;
use crate::human;
use crate::text::text;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session undo" => "Restore the last deleted session",
    "acpctl session undo main" => "Restore the session `main`",
    "acpctl session undo --all --since 1h" => "Restore all sessions deleted in the last hour",
))]
pub(in crate::command) struct Undo {
    /// Name, id or the start of the id [default: the last deleted session].
    session: Option<String>,
    /// Look only among sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Restore all deleted sessions.
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Only sessions deleted since then: 2h, 09:30, 2026-11-22, or '2026-11-22 09:30'.
    #[arg(long, value_name = "TIME", value_parser = human::read_time, requires = "all")]
    since: Option<u64>,
}

/// With `--all`, restores all matching sessions, the last deleted first.
pub(super) fn undo(args: Undo, ui: &mut Ui) -> Result {
    let Undo { session, agent, all, since } = args;
    let params = UndoParams { session, agent, since };
    let mut connection = ui.door().connect()?;
    let mut count = 0_u64;
    let left = loop {
        let UndoResult { session, kept, name_taken } =
            connection.call(method::SESSION_UNDO, &params)?;
        let id = &session.session_id;
        ui.say(match &name_taken {
            Some(name) => {
                text!("restored {} without its name: another session is named `{}`", id, name)
            }
            None => text!("restored {}", session.handle()),
        });
        count += 1;
        if kept == 0 || !all {
            break kept;
        }
    };
    match left {
        _ if all => {
            ui.say(text!("restored {}", human::counted(count, "session")));
            announce_expiry(&mut connection, ui);
        }
        0 => {}
        1 => ui.say("1 more deleted session can be restored: `acpctl session undo`"),
        more => ui.say(text!(
            "{} more deleted sessions can be restored: `acpctl session undo`, or `--all` for all of them",
            more
        )),
    }
    Ok(())
}
