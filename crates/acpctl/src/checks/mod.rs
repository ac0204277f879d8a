//! Checks of everything that acpd needs: problems and their fixes. They start no daemon and change
//! nothing.

mod agents;
mod daemon;
mod machine;

use acpd_api::Untrusted;
use acpd_client::Paths;
use serde::Serialize;

use crate::configured;
use crate::error::CommandError;
use crate::info::daemon::mistakes;
use crate::service::{Service, State};
use crate::text::{Text, text};
use daemon::ask;
use machine::{disk, kept_aside, watched};

const CONFIG: &str = "configuration";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) state: Health,
    pub(crate) text: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<Untrusted>,
    /// `--fix` runs the fix, because it ends no turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) harmless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    Ok,
    /// Works, but needs attention.
    Warning,
    Problem,
}

impl Finding {
    fn new(check: &'static str, state: Health, text: impl Into<Untrusted>) -> Finding {
        Finding { check, state, text: text.into(), fix: None, harmless: false }
    }

    pub(crate) fn ok(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Ok, text)
    }

    pub(crate) fn warning(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Warning, text)
    }

    pub(crate) fn problem(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Problem, text)
    }

    fn of(check: &'static str, error: &CommandError) -> Finding {
        let hint = error.first_hint().map(Text::as_str);
        Finding { fix: hint.map(Into::into), ..Finding::problem(check, error.message().as_str()) }
    }

    pub(crate) fn fix(self, fix: impl Into<Untrusted>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Sets a command of acpctl as the fix; the command ends no turn.
    pub(crate) fn command(self, command: &'static str) -> Finding {
        Finding { harmless: true, ..self.fix(command) }
    }
}

pub(crate) fn look(paths: &Paths) -> Vec<Finding> {
    let mut findings = Vec::new();
    let service = Service::here(paths);
    let state = match &service {
        Ok(service) => service.known(),
        Err(_) => Ok(State::default()),
    };
    let (can_start, invalid) = match &service {
        Ok(service) => match service.check_program() {
            Ok(()) => {
                let text = format!("`{}` can start", service.program.display());
                findings.push(Finding::ok("program", text));
                (true, None)
            }
            // All mistakes of the configuration are one finding.
            Err(error) => {
                let invalid = invalid();
                findings.extend(invalid.is_none().then(|| Finding::of("program", &error)));
                (false, invalid)
            }
        },
        Err(error) => {
            findings.push(Finding::of("program", error));
            (false, None)
        }
    };
    findings.push(disk(paths));
    findings.extend(kept_aside(paths));
    let mut pid = None;
    match state.as_ref().copied().unwrap_or_default().running(paths) {
        // Another finding explains why the daemon cannot start.
        Ok(None) if !can_start || state.as_ref().is_ok_and(|state| state.failed) => {
            findings.push(Finding::ok("daemon", "not running"));
        }
        Ok(None) => findings.push(Finding::ok("daemon", "not running: the first client starts it")),
        Ok(Some(mut daemon)) => match ask(&mut daemon, &mut findings) {
            Ok(found) => pid = Some(found),
            Err(error) => findings.push(Finding::of("daemon", &error)),
        },
        Err(error) => findings.push(Finding::of("daemon", &error)),
    }
    let is_told = |found: &Finding| found.check == CONFIG && found.state == Health::Problem;
    if !findings.iter().any(is_told) {
        findings.extend(invalid);
    }
    match (service, state) {
        (Ok(service), Ok(state)) => findings.extend(watched(&service, &state, pid, can_start)),
        (_, Err(error)) => findings.push(Finding::of("service", &error)),
        (Err(_), _) => {}
    }
    findings
}

fn invalid() -> Option<Finding> {
    let report = configured::report().ok().filter(|report| !report.mistakes.is_empty())?;
    let text = text!("acpd cannot start with it:{}", mistakes(&report.mistakes));
    Some(Finding::problem(CONFIG, text.as_str()).fix("acpctl config edit"))
}
