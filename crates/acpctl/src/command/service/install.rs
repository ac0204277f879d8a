//! `acpctl service install`.
//!
//! ```text
//!  acpd check ─▶ files, enable ─▶ no client may start a daemon ─▶ the running one leaves its agents
//!                                    └─▶ the manager listens ◀──────┘ and starts the next, which takes them over
//! ```

use acpd_api::{Empty, Status, Untrusted, method};
use acpd_client::{Paths, hold_starts};
use acpd_sys::lock;

use crate::error::Result;
use crate::service::{FileState, Manager, Order, Service, UnitFile};
use crate::stop::{detach, info, running};
use crate::text::text;
use crate::ui::Ui;

pub(super) fn show(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    for UnitFile { path, text } in &service.files {
        ui.print(text!("# {}\n{}\n", path, Untrusted::from(text).prose()))?;
    }
    for line in service.steps() {
        ui.print(text!("$ {}\n", Untrusted::from(line)))?;
    }
    // A connection would start a daemon if a package's manager listens. In a dry run, an unreadable
    // lock is no failure.
    if !service.is_installed()
        && lock::is_held(&paths.lock()).unwrap_or(false)
        && let Some(holder) = lock::signature(&paths.lock())
    {
        let pid = holder.pid;
        ui.say(text!("acpd is running (pid {}): the service takes it over", pid));
    }
    Ok(())
}

/// Does nothing if acpd is a current service.
pub(super) fn install(service: &Service, paths: &Paths, ui: &mut Ui) -> Result {
    service.check_program()?;
    let before = service.state()?;
    let stale: Vec<_> =
        service.files.iter().filter(|file| file.state() != FileState::Current).collect();
    // launchd listens only if the socket's directory is permanent.
    let listens = before.listens || service.manager() == Manager::Launchd;
    // A manager neither starts to listen for a running daemon nor gives it new files.
    let works = stale.is_empty() && listens && !before.failed;
    let held = hold_starts(paths)?;
    let status: Option<Status> = match before.running(paths)? {
        Some(mut daemon) => Some(daemon.call(method::STATUS, &Empty {})?),
        None => None,
    };
    let is_ours = status.as_ref().is_some_and(|status| before.pid == Some(status.daemon.pid));
    if works && before.enabled && (status.is_none() || is_ours) {
        ui.say("acpd is already installed as a service");
        lingering(service, ui);
        return Ok(());
    }
    let status = status.filter(|_| !is_ours || !works);
    for file in stale {
        let word = if file.state() == FileState::Other { "replaced" } else { "wrote" };
        file.write()?;
        ui.say(text!("{} {}", word, file.path));
    }
    service.order(Order::Enable)?;
    if !works {
        // This also ends a delayed start, which would come too late.
        service.order(Order::Stop)?;
    }
    if before.failed {
        service.order(Order::Forgive)?;
    }
    if status.is_some() && !is_ours {
        detach(paths, ui)?;
    }
    let now = status.is_some() || before.failed || before.pid.is_some();
    if let Err(error) = service.order(if now { Order::Start } else { Order::Listen }) {
        // So that clients can start the daemon, as before.
        service.order(Order::Stop).ok();
        return Err(error);
    }
    drop(held);
    let daemon = if now { running(paths)? } else { None };
    match daemon {
        Some(mut daemon) => {
            let pid = info(&mut daemon)?.pid;
            let word = if status.is_some() { "continues" } else { "runs" };
            ui.say(text!("acpd {} as a service (pid {})", word, pid));
        }
        None => ui.say("acpd is installed: it starts at login or with its first client"),
    }
    lingering(service, ui);
    Ok(())
}

/// A user's service ends with the last logout, unless the user enables lingering.
fn lingering(service: &Service, ui: &mut Ui) {
    if service.lingers() == Some(false) {
        ui.say("to keep it running after logout: loginctl enable-linger");
    }
}
