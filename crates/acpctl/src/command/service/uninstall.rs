//! `acpctl service uninstall`: removes the service and, with `--purge`, all of acpd's data in this
//! home.

use acpd_api::ExitCode;
use acpd_client::{Paths, hold_starts};
use clap::Args;

use super::traces::{Traces, mentions};
use crate::confirm::{ADD_YES_OR_DRY_RUN, confirm};
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::service::{FileState, Order, Service, State};
use crate::stop::{info, serving, stop};
use crate::text::{Text, text};
use crate::ui::Ui;

#[derive(Debug, Clone, Copy, Args)]
pub(in crate::command) struct Uninstall {
    /// Also stop acpd and all agents, and delete all data: conversations, logs, configuration, completions, and
    /// additions to its units.
    #[arg(long)]
    purge: bool,
    /// Print what would be deleted, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, requires = "purge")]
    yes: bool,
}

pub(super) fn uninstall(
    args: Uninstall,
    service: &Service,
    paths: &Paths,
    door: Door,
    ui: &mut Ui,
) -> Result {
    let traces = if args.purge { Traces::find(paths)? } else { Traces::default() };
    if !service.is_installed() && traces.is_empty() {
        ui.say("acpd is not installed as a service");
        return Ok(());
    }
    let units = service.files.iter().filter(|file| file.state() != FileState::Missing);
    let units = units.map(|file| text!("{}\n", file.path)).collect::<Text>();
    let all = text!("{}{}", units, traces.list());
    if args.dry_run {
        ui.print(all)?;
        return Ok(());
    }
    if !args.purge {
        return take_out(service, paths, door, ui);
    }
    if args.yes {
        ui.say("stopping all agents and deleting all conversations:");
        ui.talk(&all);
    } else {
        let prompt = "stop all agents and delete all this, with all conversations? y/n > ";
        confirm(ui, "deleting all data of acpd", ADD_YES_OR_DRY_RUN, &all, prompt)?;
    }
    purge(service, paths, door, ui)
}

/// Agents and turns continue under a daemon without a manager.
fn take_out(service: &Service, paths: &Paths, door: Door, ui: &mut Ui) -> Result {
    let state = service.state()?;
    let held = hold_starts(paths)?;
    let ran = state.running(paths)?.is_some();
    service.order(Order::Stop)?;
    remove(service, ui)?;
    drop(held);
    if !ran || !door.spawn {
        return Ok(());
    }
    let pid = info(&mut door.connect()?)?.pid;
    ui.say(text!("acpd keeps running without the service (pid {})", pid));
    Ok(())
}

fn purge(service: &Service, paths: &Paths, door: Door, ui: &mut Ui) -> Result {
    // A package's service no longer starts; its files belong to the package.
    let is_known = service.is_installed() || service.known()? != State::default();
    if is_known {
        service.order(Order::IgnoreClients)?;
    }
    stop(paths, false, door, ui)?;
    let held = hold_starts(paths)?;
    if serving(paths)?.is_some() {
        let text = "a client restarted acpd";
        return Err(CommandError::new(ExitCode::Error, text)
            .hint("close editors and screens that use it, then try again"));
    }
    if is_known {
        service.order(Order::Stop)?;
    }
    // New data goes too; additions go before their units, so that the folder becomes empty.
    let traces = Traces::find(paths)?;
    for kept in traces.remove()? {
        ui.say(text!("kept {}: it has other files", kept));
    }
    if is_known {
        remove(service, ui)?;
    } else {
        // Without a manager, no program read the additions.
        service.order(Order::Forget).ok();
    }
    drop(held);
    for file in mentions() {
        ui.say(text!("kept a line with `acpctl completions` in {}", file));
    }
    ui.say("everything but the programs of acpd is deleted");
    Ok(())
}

fn remove(service: &Service, ui: &mut Ui) -> Result {
    let found = service.files.iter().filter(|file| file.state() != FileState::Missing);
    let found: Vec<_> = found.collect();
    service.remove()?;
    for file in found {
        ui.say(text!("removed {}", file.path));
    }
    Ok(())
}
