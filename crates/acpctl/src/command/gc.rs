//! `acpctl gc`: deletes the sessions over the configured limits, after listing them.

use acpd_api::{GcParams, GcResult, GcSession, Untrusted, method};
use acpd_client::Connection;
use clap::Args;

use crate::args::Json;
use crate::confirm::{ADD_YES_OR_DRY_RUN, confirm};
use crate::daemon::{expired_amount as amount, expired_handle as handle};
use crate::error::Result;
use crate::human;
use crate::text::{Cut, Table, Text, text};
use crate::ui::Ui;

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = examples!(
    "\
The limits are in `[retention]` and `[[workspace]]` of the configuration; acpd applies them every hour. Sessions that work, \
wait, ask or are open in a client stay. `acpctl session undo` restores deleted sessions as long as `keep_deleted` says.";
    "acpctl gc --dry-run" => "List sessions over the limits",
    "acpctl gc --yes --json" => "Delete them in a script",
))]
pub(super) struct Gc {
    /// Show what would be deleted, and delete nothing.
    #[arg(long, conflicts_with_all = ["yes", "now"])]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    /// Delete permanently, without `session undo`, to free the space.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    json: Json,
}

pub(super) fn gc(args: Gc, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let look = GcParams { dry_run: true, ..GcParams::default() };
    let found: GcResult = connection.call(method::GC, &look)?;
    if found.sessions.is_empty() || args.dry_run {
        return show(&found, args.json, ui);
    }
    if !args.yes {
        let doing = text!("deleting {}", amount(&found));
        let shown = table(&found).render(Some(ui.err_size().0));
        let how = if args.now { " permanently" } else { "" };
        let prompt = text!("delete {}{} with their history? y/n > ", amount(&found), how);
        confirm(ui, doing, ADD_YES_OR_DRY_RUN, &shown, prompt)?;
    }
    let gone = delete(&mut connection, &found, args.now)?;
    if args.json.json {
        return Ok(ui.json(&gone)?);
    }
    let what = text!("deleted {}", amount(&gone));
    ui.done(match gone.until {
        Some(until) => {
            let until = human::clock(until);
            text!("{}; until {}, `acpctl session undo --all` restores them", what, until)
        }
        None => what,
    })
}

/// Deletes those listed sessions that are still over the limits; each call deletes a part.
fn delete(connection: &mut Connection, found: &GcResult, now: bool) -> Result<GcResult> {
    let mut only: Vec<u32> = found.sessions.iter().map(|session| session.number).collect();
    let mut all = GcResult { sessions: Vec::new(), bytes: 0, left: 0, until: None, next: None };
    loop {
        let params = GcParams { dry_run: false, now, only: Some(only.clone()) };
        let gone: GcResult = connection.call(method::GC, &params)?;
        only.retain(|number| gone.sessions.iter().all(|session| session.number != *number));
        all.bytes += gone.bytes;
        all.until = all.until.max(gone.until);
        let is_over = gone.left == 0 || gone.sessions.is_empty();
        all.sessions.extend(gone.sessions);
        if is_over {
            return Ok(all);
        }
    }
}

fn show(found: &GcResult, json: Json, ui: &mut Ui) -> Result {
    if json.json {
        return Ok(ui.json(found)?);
    }
    if found.sessions.is_empty() {
        return ui.done("no session is over a limit");
    }
    ui.print(table(found).render(ui.out_width()))?;
    ui.done(text!("{} would be deleted", amount(found)))
}

fn table(found: &GcResult) -> Table {
    let (now, home) = (human::now(), acpd_sys::paths::home());
    let row = |session: &GcSession| {
        [
            handle(session).into(),
            (&session.agent).into(),
            human::ago(session.updated, now),
            human::bytes(session.bytes),
            limit(session),
            human::directory(&session.cwd, home.as_deref()),
        ]
    };
    let titles = ["SESSION", "AGENT", "USED", "SIZE", "LIMIT", "DIRECTORY"];
    Table::new(titles, found.sessions.iter().map(row))
        .cut("DIRECTORY", Cut::Middle(12))
        .drop(&["AGENT"])
}

fn limit(session: &GcSession) -> Text {
    let workspace = session.workspace.as_ref().map(|workspace| text!(" of {}", workspace));
    text!("{}{}", Untrusted::from(human::word(&session.limit)), workspace)
}
