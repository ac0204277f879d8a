//! `acpctl restore`: replaces the journal by a backup.

use std::ffi::OsStr;
use std::path::PathBuf;

use acpd_api::{CopyReport, Empty, ExitCode, Status, method};
use acpd_client::{Paths, hold_starts};
use clap::{Args, ValueHint};

use crate::args::Json;
use crate::confirm::{ADD_YES, confirm};
use crate::daemon::{has_shims, running_turns, stop};
use crate::error::{CommandError, ErrorKind, Result};
use crate::human::counted;
use crate::info::daemon::mistakes;
use crate::live::Door;
use crate::programs::{config_report, contents, copy};
use crate::service::{Order, Service};
use crate::text::{Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Stops acpd and its agents, and starts acpd again afterwards. The current journal is kept as acpd-before-restore-N.db \
until you delete it.";
    "acpctl restore ~/acpd.backup" => "Replace all conversations with those of the backup",
))]
pub(super) struct Restore {
    /// The backup.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    /// Restore even if that interrupts running turns.
    #[arg(long, requires = "yes")]
    force: bool,
    #[command(flatten)]
    json: Json,
}

/// Stops the daemon, replaces the journal, and starts the daemon again.
pub(super) fn restore(args: &Restore, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let file = args.file.as_os_str();
    // Check the file before anything is stopped.
    let found = copy([OsStr::new("restore"), OsStr::new("--check"), file], "looking", ui)?;
    let (service, state) = Service::with(&paths, |state| state.listens).unzip();
    let daemon = state.unwrap_or_default().running(&paths)?;
    let status = daemon.map(|mut daemon| daemon.call::<_, Status>(method::STATUS, &Empty {}));
    let turns = status.transpose()?.map(|status| running_turns(&status) as u64);
    // The daemon must be able to start again.
    let starts = turns.is_some() || has_shims(&paths);
    let wrong = if starts { config_report()?.mistakes } else { Vec::new() };
    if !wrong.is_empty() {
        let text = "nothing was stopped, because acpd could not start again:";
        return Err(CommandError::new(ExitCode::Error, text!("{}{}", text, mistakes(&wrong)))
            .hint("fix it: `acpctl config edit`"));
    }
    let interrupted = turns.filter(|turns| *turns > 0 && !args.force);
    if let (true, Some(turns)) = (args.yes, interrupted) {
        let text = text!("this would interrupt {}", counted(turns, "turn"));
        return Err(CommandError::new(ExitCode::Error, text)
            .hint("wait with `acpctl wait`, or add `--force`"));
    }
    if !args.yes {
        let shown = text!("`{}` holds {}\n", found.file, contents(&found));
        let doing = "restoring a backup";
        confirm(ui, doing, ADD_YES, &shown, question(turns))?;
    }
    // A new client would have the service manager start the daemon again and again until the
    // manager gives up.
    if let Some(service) = &service {
        // Without a daemon, the manager may be waiting to restart a failed one.
        service.order(if turns.is_some() { Order::IgnoreClients } else { Order::Stop })?;
    }
    // Print before the start: even if the start fails, the journal is replaced.
    let done = replace(&paths, file, turns.is_some(), ui).and_then(|(restored, are_left)| {
        report(&restored, args.json.json, ui)?;
        if are_left { stop(&paths, false, true, ui) } else { Ok(()) }
    });
    // Also after a failure, which changed nothing.
    let started = match service {
        Some(service) => {
            let start = if turns.is_some() { Order::Start } else { Order::Listen };
            service.order(Order::Forgive).and_then(|()| service.order(start))
        }
        None if turns.is_some() => Door::here(true).connect().map(drop),
        None => Ok(()),
    };
    done?;
    started
}

fn report(restored: &CopyReport, json: bool, ui: &mut Ui) -> Result {
    if json {
        return Ok(ui.json(restored)?);
    }
    ui.say(text!("restored {}", contents(restored)));
    if let Some(kept) = &restored.kept {
        ui.say(text!("the previous journal is kept: `{}`", kept));
    }
    Ok(())
}

/// Replaces the journal while no client can start a daemon. Returns whether the new daemon must end
/// the agents of the old one.
fn replace(paths: &Paths, file: &OsStr, runs: bool, ui: &mut Ui) -> Result<(CopyReport, bool)> {
    let mut are_left = false;
    if runs || has_shims(paths) {
        match stop(paths, false, true, ui) {
            // A backup is needed most when the daemon cannot start with the current journal.
            Err(error) if !runs && error.kind == ErrorKind::NotStarted => are_left = true,
            stopped => stopped?,
        }
    }
    let _held = hold_starts(paths)?;
    Ok((copy([OsStr::new("restore"), file], "restoring", ui)?, are_left))
}

fn question(turns: Option<u64>) -> Text {
    let stopped = match turns {
        None => Text::new(),
        Some(0) => " and stop acpd with its agents".into(),
        Some(turns) => text!(" and interrupt {}", counted(turns, "turn")),
    };
    text!("replace all current conversations by it{}? y/n > ", stopped)
}
