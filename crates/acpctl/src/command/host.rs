//! `acpctl host check`: tries the connections to other machines.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use acpd_api::{Status, method};
use acpd_client::{Host, Options, Place, connect};
use clap::Subcommand;

use crate::args::Json;
use crate::checks::{self, Finding};
use crate::daemon::IN_USE;
use crate::error::Result;
use crate::hosts::KnownHosts;
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum HostCommand {
    /// Connect to other machines, and show how to fix what fails; exits with 1 if something does.
    #[command(after_long_help = examples!(
        "acpctl host check" => "Try all machines of the configuration",
        "acpctl host check box" => "Try one; ssh may ask for a password",
    ))]
    Check {
        /// Name in the configuration, or a destination for ssh [default: all of the configuration].
        name: Option<String>,
        #[command(flatten)]
        json: Json,
    },
}

pub(super) fn host(HostCommand::Check { name, json }: HostCommand, ui: &mut Ui) -> Result {
    let hosts = KnownHosts::read()?.hosts(name.as_deref())?;
    ui.spin("connecting");
    let findings = thread::scope(|scope| {
        let started: Vec<_> = hosts.into_iter().map(|host| scope.spawn(|| check(host))).collect();
        started.into_iter().filter_map(|check| check.join().ok()).collect()
    });
    ui.stop_spinning();
    checks::show(findings, json.json, ui)
}

fn check(host: Host) -> Finding {
    let (start, name) = (Instant::now(), host.name.clone());
    let status = || -> Result<Status> {
        let place = Place::Host(Arc::new(host));
        Ok(connect(&Options { spawn: false, place })?.call(method::STATUS, &IN_USE)?)
    };
    match status() {
        Ok(Status { daemon, .. }) => {
            let (version, passed) = (daemon.version.raw(), start.elapsed().as_millis());
            Finding::ok(&name, format!("acpd {version} runs; connected in {passed} ms"))
        }
        Err(error) => Finding::of(&name, &error),
    }
}
