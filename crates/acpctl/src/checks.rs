//! Checks of everything that acpd needs: problems and their fixes. They start no daemon and change
//! nothing.

mod agents;

use std::path::Path;

use acpd_api::{
    AgentList, ConfigMistake, Empty, ExitCode, GcParams, GcResult, Metrics, StoreState, Untrusted,
    method,
};
use acpd_client::{Connection, Paths};
use acpd_sys::machine::free_space;
use serde::Serialize;

use crate::daemon::info;
use crate::error::{CommandError, Result};
use crate::info::daemon::mistakes;
use crate::service::{Service, State};
use crate::text::{Role, Text, shell_word, text};
use crate::ui::Ui;
use crate::{human, programs};
use agents::{asks_nobody, lost, preview, shims, surroundings, trouble, unsupported};

const CONFIG: &str = "configuration";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) check: Untrusted,
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
    fn new(check: &str, state: Health, text: impl Into<Untrusted>) -> Finding {
        Finding { check: check.into(), state, text: text.into(), fix: None, harmless: false }
    }

    pub(crate) fn ok(check: &str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Ok, text)
    }

    pub(crate) fn warning(check: &str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Warning, text)
    }

    pub(crate) fn problem(check: &str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Problem, text)
    }

    pub(crate) fn of(check: &str, error: &CommandError) -> Finding {
        let hint = error.hints.first().map(Text::as_str);
        Finding { fix: hint.map(Into::into), ..Finding::problem(check, error.message.as_str()) }
    }

    pub(crate) fn fix(self, fix: impl Into<Untrusted>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Sets a command of acpctl as the fix; the command ends no turn.
    pub(crate) fn command(self, command: &'static str) -> Finding {
        Finding { harmless: true, ..self.fix(command) }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<Finding>,
}

/// Prints findings; fails if there is a problem.
pub(crate) fn show(findings: Vec<Finding>, json: bool, ui: &mut Ui) -> Result {
    let report = Report { findings };
    ui.show(json, &report, card(&report))?;
    match report.findings.iter().filter(|found| found.state == Health::Problem).count() {
        0 => Ok(()),
        _ if json => Err(CommandError::printed()),
        count => {
            let text = human::counted(count, "problem");
            Err(CommandError::new(ExitCode::Error, text!("{} found", text)))
        }
    }
}

fn card(report: &Report) -> Text {
    let line = |found: &Finding| {
        let (style, word) = match found.state {
            Health::Ok => (Role::Good, "ok     "),
            Health::Warning => (Role::Warning, "warning"),
            Health::Problem => (Role::Bad, "problem"),
        };
        let gap = Text::repeated(" ", 13usize.saturating_sub(found.check.raw().len()));
        let fix = found.fix.as_ref().map(|fix| {
            let fix = Text::styled(Role::Dim, text!("fix: {}", fix));
            text!("{}{}\n", Text::repeated(" ", 24), fix)
        });
        let said = Text::join(
            found.text.raw().lines().map(|line| Untrusted::from(line).verbatim().into()),
            "\n                        ",
        );
        text!("{}  {}{}  {}\n{}", Text::styled(style, word), &found.check, gap, said, fix)
    };
    report.findings.iter().map(line).collect()
}

pub(crate) fn look(paths: &Paths) -> Vec<Finding> {
    let mut findings = Vec::new();
    let service = Service::here(paths);
    let state = service.as_ref().map_or_else(|_| Ok(State::default()), Service::known);
    let program = match &service {
        Ok(service) => service.check_program().map_or_else(
            |error| Finding::of("program", &error),
            |()| Finding::ok("program", format!("`{}` can start", service.program.display())),
        ),
        Err(error) => Finding::of("program", error),
    };
    let can_start = program.state == Health::Ok;
    // All mistakes of the configuration are one finding.
    let invalid = if can_start || service.is_err() { None } else { invalid() };
    findings.extend(invalid.is_none().then_some(program));
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
    findings.extend(invalid.filter(|_| !findings.iter().any(is_told)));
    match (service, state) {
        (Ok(service), Ok(state)) => findings.extend(watched(&service, &state, pid, can_start)),
        (_, Err(error)) => findings.push(Finding::of("service", &error)),
        (Err(_), _) => {}
    }
    findings
}

fn invalid() -> Option<Finding> {
    let report = programs::config_report().ok().filter(|report| !report.mistakes.is_empty())?;
    Some(misconfigured("acpd cannot start with it", &report.mistakes))
}

fn misconfigured(what: &'static str, wrong: &[ConfigMistake]) -> Finding {
    let text = text!("{}:{}", what, mistakes(wrong));
    Finding::problem(CONFIG, text.as_str()).fix("acpctl config edit")
}

/// A larger journal is reported if no limit is configured.
const LARGE_JOURNAL_BYTES: u64 = 1 << 30;

fn size(daemon: &mut Connection) -> Option<Finding> {
    let metrics: Metrics = daemon.call(method::METRICS, &Empty {}).ok()?;
    let bytes = metrics.journal.bytes.filter(|bytes| *bytes > LARGE_JOURNAL_BYTES)?;
    let look = GcParams { dry_run: true, ..GcParams::default() };
    // The request fails if no limit is configured.
    if daemon.call::<_, GcResult>(method::GC, &look).is_ok() {
        return None;
    }
    let text = text!("{}, and no limit is configured", human::bytes(bytes));
    let fix = "set `max_age` or `max_size` under `[retention]` in the configuration: `acpctl config edit`";
    Some(Finding::warning("journal", text.as_str()).fix(fix))
}

/// Returns the pid of the daemon.
fn ask(daemon: &mut Connection, findings: &mut Vec<Finding>) -> Result<u32> {
    let info = info(daemon)?;
    let own = env!("CARGO_PKG_VERSION");
    let running = format!("acpd {} runs as pid {}", info.version.raw(), info.pid);
    findings.push(if info.version == *own {
        Finding::ok("daemon", running)
    } else {
        Finding::warning("daemon", format!("{running}, but this is acpctl {own}"))
            .fix("acpctl daemon restart")
    });
    if let StoreState::Failing { reason, hint, .. } = &info.store {
        let found = Finding::problem("journal", format!("cannot be written: {}", reason.raw()));
        findings.push(Finding { fix: hint.clone(), ..found });
    }
    findings.extend(size(daemon));
    if info.since > human::now() {
        let text = "it is before the start of acpd: ages and time limits are wrong";
        findings.push(Finding::warning("clock", text).fix("set the clock of this machine"));
    }
    findings.push(match &info.config_changed {
        None => {
            let file = info.config.raw();
            let is_there = Path::new(file).exists();
            let state =
                if is_there { "is in use" } else { "does not exist: all values are defaults" };
            Finding::ok(CONFIG, format!("`{file}` {state}"))
        }
        Some(changed) if changed.mistakes.is_empty() => {
            Finding::warning(CONFIG, "it has changed and is not reloaded yet")
                .command("acpctl daemon reload")
        }
        Some(changed) => misconfigured("acpd keeps the old one", &changed.mistakes),
    });
    let surroundings = surroundings(daemon, &info.default_agent);
    let list: AgentList = daemon.call(method::AGENT_LIST, &Empty {})?;
    let there = list.agents.iter().filter(|agent| agent.installed == Some(true)).count();
    findings
        .push(Finding::ok("agents", human::counted(there, "agent").as_str().to_owned() + " found"));
    let named = programs::config_values().map(|found| found.agents).unwrap_or_default();
    for agent in &list.agents {
        findings.extend(unsupported(agent));
        findings.extend(preview(agent));
        findings.extend(asks_nobody(agent));
        let is_named = named.contains(&agent.name) || agent.name == info.default_agent;
        let trouble = trouble(agent, &info.default_agent, is_named);
        let is_looked_for = trouble.is_none() && named.contains(&agent.name);
        findings.extend(trouble.or_else(|| is_looked_for.then(|| lost(daemon, agent))?));
    }
    findings.extend(shims(&list.agents, info.version.raw()));
    findings.extend(surroundings);
    Ok(info.pid)
}

const MIN_FREE_BYTES: u64 = 200 << 20;

fn disk(paths: &Paths) -> Finding {
    let existing = paths.state.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let Ok(free) = free_space(existing) else {
        return Finding::problem("disk", format!("cannot look at `{}`", existing.display()));
    };
    let text = format!("{} free for the journal", human::bytes(free).as_str());
    if free >= MIN_FREE_BYTES {
        return Finding::ok("disk", text);
    }
    Finding::problem("disk", text).fix("free some space: acpd pauses agents while it cannot write")
}

fn kept_aside(paths: &Paths) -> Option<Finding> {
    let files = paths.state.read_dir().ok()?.flatten();
    let kept = files.filter(|file| {
        let name = file.file_name();
        name.to_str().is_some_and(|name| name.starts_with(Paths::KEPT_ASIDE))
    });
    let (mut journals, mut bytes) = (0, 0);
    for file in kept {
        let is_journal = Path::new(&file.file_name()).extension().is_some_and(|end| end == "db");
        journals += u64::from(is_journal);
        bytes += file.metadata().map_or(0, |file| file.len());
    }
    let text = text!(
        "{} from before a restore, {}",
        human::counted(journals, "journal"),
        human::bytes(bytes)
    );
    let folder = Untrusted::of(paths.state.display());
    (bytes > 0).then(|| {
        let files = text!("{}/{}*", shell_word(&folder), Paths::KEPT_ASIDE);
        Finding::warning("kept aside", text.as_str())
            .fix(text!("delete what you do not need: rm {}", files).as_str())
    })
}

fn watched(
    service: &Service,
    state: &State,
    serving: Option<u32>,
    can_start: bool,
) -> Vec<Finding> {
    let is_installed = service.is_installed();
    if !is_installed && *state == State::default() {
        return vec![Finding::ok("service", "not installed: clients start acpd")];
    }
    // A service without files of acpctl belongs to a package.
    let is_stale = is_installed && service.stale().next().is_some();
    let has_failed = "acpd has failed and may not be restarted";
    let install = |finding: Finding| finding.command("acpctl service install");
    let mut findings = vec![if state.failed && can_start {
        install(Finding::problem("service", has_failed))
    } else if state.failed {
        // The problem is reported above, and must be fixed first.
        Finding::warning("service", has_failed)
            .fix("after fixing the problem: acpctl service install")
    } else if is_stale {
        install(Finding::warning("service", "its files are from another version of acpd"))
    } else if serving.is_some() && serving != state.pid {
        install(Finding::warning("service", "the running daemon was started by a client"))
    } else if !state.enabled {
        install(Finding::warning("service", "it does not start at login"))
    } else {
        Finding::ok("service", "installed, and starts at login")
    }];
    if service.lingers() == Some(false) {
        // This is a choice, and what most users want.
        let text = "acpd stops when you log out; to keep it running: loginctl enable-linger";
        findings.push(Finding::ok("lingering", text));
    }
    findings
}
