//! `acpctl doctor`: checks everything that acpd needs, and reports problems and their fixes.
//!
//! A look starts no daemon and changes nothing. With `--fix`, commands of acpctl that end no turn are run.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use acpd_api::{
    AgentInfo, AgentList, AgentRef, AgentState, Empty, ExitCode, GcParams, GcResult, Metrics,
    ShimInfo, Status, StoreState, Untrusted, method,
};
use acpd_client::{CallError, Connection, Paths};
use acpd_sys::machine::free_space;
use clap::Args;
use serde::Serialize;

use crate::args::Json;
use crate::configured;
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::daemon::mistakes;
use crate::info::environment::found_here;
use crate::service::{FileState, Service, State};
use crate::stop::running;
use crate::text::{Role, Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Clone, Copy, Args)]
#[command(after_long_help = examples!(
    "acpctl doctor" => "List problems and how to fix them",
    "acpctl doctor --fix" => "Fix what interrupts no turn",
))]
pub(super) struct Doctor {
    /// Fix what needs no interrupted turn: reload the configuration, rewrite service files.
    #[arg(long)]
    fix: bool,
    #[command(flatten)]
    json: Json,
}

/// Less room than this on the disk of the journal is a problem, in bytes.
const ROOM: u64 = 200 << 20;
/// Longest time to connect to an SSH agent.
const SSH_AGENT: Duration = Duration::from_secs(1);

const CONFIG: &str = "configuration";
/// Why an agent is stopped that is meant to be.
const BY_PERSON: &str = "stopped by a person";
/// A journal that is larger than this, and that no limit keeps smaller, is reported.
const LARGE: u64 = 1 << 30;

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) state: Health,
    pub(super) text: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Untrusted>,
    /// `--fix` does that: it ends no turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    harmless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    Ok,
    /// Works, but needs attention.
    Warning,
    /// Something does not work.
    Problem,
}

impl Finding {
    fn new(check: &'static str, state: Health, text: impl Into<Untrusted>) -> Finding {
        Finding { check, state, text: text.into(), fix: None, harmless: false }
    }

    fn ok(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Ok, text)
    }

    fn warning(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Warning, text)
    }

    fn problem(check: &'static str, text: impl Into<Untrusted>) -> Finding {
        Finding::new(check, Health::Problem, text)
    }

    fn of(check: &'static str, error: &CommandError) -> Finding {
        let hint = error.first_hint().map(Text::as_str);
        Finding { fix: hint.map(Into::into), ..Finding::problem(check, error.message().as_str()) }
    }

    fn fix(self, fix: impl Into<Untrusted>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// A command of acpctl that ends no turn.
    fn command(self, command: &'static str) -> Finding {
        Finding { harmless: true, ..self.fix(command) }
    }
}

/// Looks, and mends what it may.
pub(super) fn doctor(args: Doctor, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    let mut findings = look(&paths);
    if args.fix {
        for line in findings.iter().filter(|found| found.harmless).filter_map(|f| f.fix.as_ref()) {
            ui.say(text!("running `{}`", line));
            run(line)?;
        }
        findings = look(&paths);
    }
    let report = Report { findings };
    ui.show(args.json.json, &report, card(&report))?;
    match report.findings.iter().filter(|found| found.state == Health::Problem).count() {
        0 => Ok(()),
        _ if args.json.json => Err(CommandError::told()),
        count => {
            let text = human::counted(count as u64, "problem");
            Err(CommandError::new(ExitCode::Error, text!("{} found", text)))
        }
    }
}

/// Runs a command of acpctl. The line is acpd's own, without text from outside.
fn run(line: &Untrusted) -> Result {
    let exe =
        env::current_exe().map_err(|e| CommandError::file("find", Path::new("acpctl"), &e))?;
    let mut command = Command::new(&exe);
    command.args(line.raw().split(' ').skip(1)).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().map_err(|error| CommandError::file("run", &exe, &error))?;
    if status.success() { Ok(()) } else { Err(CommandError::told()) }
}

/// Checks everything; starts and changes nothing.
pub(super) fn look(paths: &Paths) -> Vec<Finding> {
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
            // Mistakes of the configuration are one finding.
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
    let listens = state.as_ref().ok().filter(|state| state.listens && state.pid.is_none());
    let daemon = match listens {
        // Looking would start it.
        Some(_) => Ok(None),
        None => running(paths),
    };
    let mut pid = None;
    match daemon {
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

/// A configuration with which acpd does not start.
fn invalid() -> Option<Finding> {
    let report = configured::report().ok().filter(|report| !report.mistakes.is_empty())?;
    let text = text!("acpd cannot start with it:{}", mistakes(&report.mistakes));
    Some(Finding::problem(CONFIG, text.as_str()).fix("acpctl config edit"))
}

/// The room on the disk of the journal.
fn disk(paths: &Paths) -> Finding {
    let existing = paths.state.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let Ok(free) = free_space(existing) else {
        return Finding::problem("disk", format!("cannot look at `{}`", existing.display()));
    };
    let text = format!("{} free for the journal", human::bytes(free).as_str());
    if free >= ROOM {
        return Finding::ok("disk", text);
    }
    Finding::problem("disk", text).fix("free some space: acpd pauses agents while it cannot write")
}

/// Journals that a restore has left next to the one in use.
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

/// A journal that gets larger and larger.
fn size(daemon: &mut Connection) -> Option<Finding> {
    let metrics: Metrics = daemon.call(method::METRICS, &Empty {}).ok()?;
    let bytes = metrics.journal.bytes.filter(|bytes| *bytes > LARGE)?;
    let look = GcParams { dry_run: true, ..GcParams::default() };
    // Without a limit that is refused.
    if daemon.call::<_, GcResult>(method::GC, &look).is_ok() {
        return None;
    }
    let text = text!("{}, and no limit is configured", human::bytes(bytes));
    let fix = "set `max_age` or `max_size` under `[retention]` in the configuration: `acpctl config edit`";
    Some(Finding::warning("journal", text.as_str()).fix(fix))
}

/// Checks the daemon and its agents; returns its pid.
fn ask(daemon: &mut Connection, findings: &mut Vec<Finding>) -> Result<u32> {
    let Status { daemon: info, .. } = daemon.call(method::STATUS, &Empty {})?;
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
            Finding::ok(
                CONFIG,
                if Path::new(file).exists() {
                    format!("`{file}` is in use")
                } else {
                    format!("`{file}` does not exist: all values are defaults")
                },
            )
        }
        Some(changed) if changed.mistakes.is_empty() => {
            Finding::warning(CONFIG, "it has changed and is not reloaded yet")
                .command("acpctl daemon reload")
        }
        Some(changed) => {
            let text = text!("acpd keeps the old one:{}", mistakes(&changed.mistakes));
            Finding::problem(CONFIG, text.as_str()).fix("acpctl config edit")
        }
    });
    let surroundings = surroundings(daemon, &info.default_agent);
    let list: AgentList = daemon.call(method::AGENT_LIST, &Empty {})?;
    let there = list.agents.iter().filter(|agent| agent.installed == Some(true)).count();
    findings.push(Finding::ok(
        "agents",
        human::counted(there as u64, "agent").as_str().to_owned() + " found",
    ));
    let named = configured::values().map(|found| found.agents).unwrap_or_default();
    for agent in &list.agents {
        findings.extend(unsupported(agent));
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

/// Methods that an agent announced and does not have: its sessions may come back with a summary only.
fn unsupported(agent: &AgentInfo) -> Option<Finding> {
    if agent.unsupported.is_empty() {
        return None;
    }
    let methods: Vec<&str> = agent.unsupported.iter().map(Untrusted::raw).collect();
    let (name, methods) = (agent.name.raw(), methods.join(", "));
    let text =
        format!("`{name}` announces {methods} but does not support it; acpd no longer uses it");
    let fix = format!("acpctl agent restart {}", shell_word(&agent.name));
    Some(Finding::warning("agent", text).fix(fix))
}

/// Ids of modes in which agents act without asking, as claude, codex, copilot, gemini, qwen and opencode name theirs.
const SILENT_MODES: [&str; 11] = [
    "auto",
    "autoedit",
    "acceptedits",
    "bypasspermissions",
    "dontask",
    "yolo",
    "autopilot",
    "fullaccess",
    "agentfullaccess",
    "dangerfullaccess",
    "allowall",
];

/// An agent whose sessions begin in a mode that does not ask: a new version may have changed that.
fn asks_nobody(agent: &AgentInfo) -> Option<Finding> {
    let mode = agent.default_mode.as_ref()?;
    // Copilot's ids are addresses.
    let id = mode.raw().rsplit('#').next().unwrap_or_default().to_ascii_lowercase();
    let id = id.replace(['-', '_', ' '], "");
    if !SILENT_MODES.contains(&id.as_str()) {
        return None;
    }
    let (name, mode) = (agent.name.raw(), mode.raw());
    let text = format!("{name} starts sessions in mode `{mode}`, which acts without asking");
    let fix = format!(
        "set `mode = \"default\"` (`acpctl session mode SESSION` lists the modes) in `[agents.{name}]`: acpctl config edit"
    );
    Some(Finding::warning("agents", text).fix(fix))
}

/// Finds problems in the environment of agents. The daemon answers after its login shell: before that it does
/// not know which agents are there.
fn surroundings(daemon: &mut Connection, default: &Untrusted) -> Vec<Finding> {
    let agent = AgentRef { agent: default.raw().to_owned() };
    let shown: std::result::Result<AgentInfo, CallError> = daemon.call(method::AGENT_SHOW, &agent);
    let Ok(agent) = shown else { return Vec::new() };
    let login_shell = agent.login_shell.as_ref().and_then(|shell| shell.problem.as_ref());
    let login_shell = login_shell.map(|why| {
        let text = format!("did not report its environment: {}", why.raw());
        let fix = "fix its startup files, or skip the slow part where ACPD_RESOLVING_ENVIRONMENT is set; \
                   acpd tries again at the next start of an agent";
        Finding::warning("login shell", text).fix(fix)
    });
    login_shell.into_iter().chain(ssh_agent(&agent)).collect()
}

/// An SSH agent in the environment of agents that is gone, such as that of a login that is over.
fn ssh_agent(agent: &AgentInfo) -> Option<Finding> {
    const NAME: &str = "SSH_AUTH_SOCK";
    let variable = agent.environment.iter().find(|variable| variable.name == *NAME)?;
    let socket = variable.value.as_ref()?.raw();
    if acpd_sys::socket::connect(Path::new(socket), SSH_AGENT).is_ok() {
        return None;
    }
    let text = format!("agents get {NAME} `{socket}`, but no SSH agent listens there");
    let fix = format!(
        "set `inherit_env = [\"{NAME}\"]` under `[defaults]` in the configuration; then, in a terminal where `ssh-add -l` \
         works: acpctl daemon restart, acpctl agent restart {}",
        agent.name.raw()
    );
    Some(Finding::warning("ssh agent", text).fix(fix))
}

/// The processes that keep agents, which are as old as the agents.
fn shims(agents: &[AgentInfo], current: &str) -> Vec<Finding> {
    let all: u64 = agents.iter().map(|agent| agent.shims.len() as u64).sum();
    let is_old = |shim: &ShimInfo| shim.version.as_ref().is_none_or(|version| *version != *current);
    let mut findings = Vec::new();
    for agent in agents {
        let Some(old) = agent.shims.iter().find(|shim| is_old(shim)) else { continue };
        let version = old.version.as_ref().map_or("0.1.0", Untrusted::raw);
        let name = agent.name.raw();
        let text = format!("{name} runs under a shim of acpd {version}, and acpd is {current}");
        findings.push(Finding::warning("shims", text).fix(format!("acpctl agent restart {name}")));
    }
    if findings.is_empty() && all > 0 {
        let text = text!("{} of acpd {}", human::counted(all, "shim"), Untrusted::from(current));
        findings.push(Finding::ok("shims", text.as_str()));
    }
    findings
}

/// An agent that does not run as it should.
fn trouble(agent: &AgentInfo, default: &Untrusted, is_named: bool) -> Option<Finding> {
    let name = agent.name.raw();
    let why = agent.reason.as_ref().map(|why| format!(": {}", why.raw())).unwrap_or_default();
    if agent.auth.state.wants_login() || agent.state == AgentState::NeedsAuth {
        let text = format!("{name} needs a login");
        return Some(Finding::warning("agents", text).fix(format!("acpctl auth login {name}")));
    }
    // An agent that was only named once on a command line may not be wanted.
    let is_wanted = is_named || agent.installed != Some(false);
    let has_failed = matches!(agent.state, AgentState::Failed | AgentState::Backoff);
    if is_wanted && (has_failed || has_died(agent)) {
        let found = Finding::problem("agents", format!("{name} is not running{why}"));
        let look = || format!("acpctl agent logs {name}").into();
        return Some(Finding { fix: Some(agent.hint.clone().unwrap_or_else(look)), ..found });
    }
    let is_missing = agent.name == *default && agent.installed == Some(false);
    is_missing.then(|| {
        let found = Finding::problem("agents", format!("{name}, the default, is not installed"));
        Finding { fix: agent.install.clone(), ..found }
    })
}

/// Returns whether the last process of an agent has ended by itself, and no other one was started since.
fn has_died(agent: &AgentInfo) -> bool {
    let by_person = |why: &Untrusted| *why == BY_PERSON;
    agent.state == AgentState::Stopped && agent.reason.as_ref().is_some_and(|why| !by_person(why))
}

/// An agent of the configuration whose program is missing or cannot be run, even if it was never started.
fn lost(daemon: &mut Connection, agent: &AgentInfo) -> Option<Finding> {
    let name = agent.name.raw().to_owned();
    let agent: AgentInfo =
        daemon.call(method::AGENT_SHOW, &AgentRef { agent: name.clone() }).ok()?;
    let text = format!("{name}: {}", agent.not_found.as_ref()?.raw());
    let found = match &agent.install {
        // A table for a known agent may be meant for another machine.
        Some(_) => Finding::warning("agents", text),
        None => Finding::problem("agents", text),
    };
    let edit = || {
        let text = text!("set `command` in `[agents.{}]`: acpctl config edit", agent.name);
        Untrusted::from(text.as_str())
    };
    // Problems of a login shell are a finding of their own.
    let here = found_here(&agent).map(|text| Untrusted::from(text.as_str()));
    Some(found.fix(here.or_else(|| agent.install.clone()).unwrap_or_else(edit)))
}

/// Checks whether the system starts and watches the daemon as the service's files demand.
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
    // One that is used without files of ours has those of a package.
    let is_stale =
        is_installed && service.files.iter().any(|file| file.state() != FileState::Current);
    let mut findings = vec![if state.failed && can_start {
        Finding::problem("service", "acpd has failed and may not be restarted")
            .command("acpctl service install")
    } else if state.failed {
        // The problem is reported above, and the service cannot be fixed before it.
        Finding::warning("service", "acpd has failed and may not be restarted")
            .fix("after fixing the problem: acpctl service install")
    } else if is_stale {
        Finding::warning("service", "its files are from another version of acpd")
            .command("acpctl service install")
    } else if serving.is_some() && serving != state.pid {
        Finding::warning("service", "the running daemon was started by a client")
            .command("acpctl service install")
    } else if !state.enabled {
        Finding::warning("service", "it does not start at login").command("acpctl service install")
    } else {
        Finding::ok("service", "installed, and starts at login")
    }];
    if service.lingers() == Some(false) {
        // A choice, and what most people want.
        let text = "acpd stops when you log out; to keep it running: loginctl enable-linger";
        findings.push(Finding::ok("lingering", text));
    }
    findings
}

fn card(report: &Report) -> Text {
    let line = |found: &Finding| {
        let (style, word) = match found.state {
            Health::Ok => (Role::Good, "ok     "),
            Health::Warning => (Role::Warning, "warning"),
            Health::Problem => (Role::Bad, "problem"),
        };
        let gap = Text::repeated(" ", 13usize.saturating_sub(found.check.len()));
        let fix = found.fix.as_ref().map(|fix| {
            let fix = Text::styled(Role::Dim, text!("fix: {}", fix));
            text!("{}{}\n", Text::repeated(" ", 24), fix)
        });
        let said = Text::join(
            found.text.raw().lines().map(|line| Untrusted::from(line).verbatim().into()),
            "\n                        ",
        );
        text!("{}  {}{}  {}\n{}", Text::styled(style, word), found.check, gap, said, fix)
    };
    report.findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(more: serde_json::Value) -> AgentInfo {
        let mut agent = serde_json::json!({"name": "a", "title": "A", "state": "stopped", "since": 1,
            "restarts": 0, "command": ["a"], "sessions": 0, "log": "/l", "tried": true});
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(agent).unwrap()
    }

    #[test]
    fn agents_that_somebody_wants_and_that_die_at_start_are_problems() {
        let told = |more: serde_json::Value, is_named| {
            trouble(&agent(more), &"other".into(), is_named).map(|found| found.state)
        };
        let died = serde_json::json!({"reason": "it ended with exit code 1", "installed": true});
        assert_eq!(told(died, true), Some(Health::Problem));
        assert_eq!(told(serde_json::json!({"reason": "stopped by a person"}), true), None);
        let missing =
            serde_json::json!({"state": "failed", "reason": "cannot find `a`", "installed": false});
        assert_eq!(told(missing.clone(), false), None, "its name was typed once");
        assert_eq!(told(missing, true), Some(Health::Problem));
        let failed = serde_json::json!({"state": "failed", "reason": "r", "installed": true});
        assert_eq!(told(failed, false), Some(Health::Problem));
    }

    #[test]
    fn agent_whose_default_mode_does_not_ask_is_a_warning() {
        let found = |mode: serde_json::Value| {
            asks_nobody(&agent(serde_json::json!({"defaultMode": mode}))).map(|found| found.state)
        };
        let copilot = "https://agentclientprotocol.com/protocol/session-modes#autopilot";
        for silent in ["auto", "bypassPermissions", "auto_edit", "full-access", "YOLO", copilot] {
            assert_eq!(found(silent.into()), Some(Health::Warning), "{silent}");
        }
        for asking in ["default", "plan", "read-only", "ask", "build", "automatic-review"] {
            assert_eq!(found(asking.into()), None, "{asking}");
        }
        assert!(asks_nobody(&agent(serde_json::json!({}))).is_none());
    }
}
