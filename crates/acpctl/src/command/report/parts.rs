//! The parts of a report. A failed part becomes a note; the others are written anyway.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use acpd_api::redact::HIDDEN;
use acpd_api::{
    AgentInfo, AgentList, Empty, Metrics, Outcome, SessionInfo, Status, Untrusted, method,
};
use acpd_client::{Connection, Paths};
use acpd_sys::machine;
use jiff::Timestamp;

use super::log::clean;
use crate::checks::{Finding, Health, look};
use crate::human::{self, word};
use crate::log_file;
use crate::programs;
use crate::prometheus;
use crate::service::{self, Service};

const LOG_LINES: usize = 200;
const MAX_SESSIONS: usize = 50;
const MAX_VERSION_LENGTH: usize = 60;
const MAX_OUTPUT_BYTES: usize = 1 << 20;

pub(super) fn all(paths: &Paths) -> String {
    let service = Service::here(paths).ok();
    let installed = service.as_ref().filter(|service| service.is_installed());
    let state = installed.and_then(|service| service.state().ok()).unwrap_or_default();
    let mut daemon = state.running(paths).ok().flatten();
    let status = daemon.as_mut().and_then(|daemon| asked::<Status>(daemon, method::STATUS));
    let agents = daemon.as_mut().and_then(|daemon| asked::<AgentList>(daemon, method::AGENT_LIST));
    let parts = [
        ("Versions", versions(status.as_ref())),
        ("What `acpctl doctor` finds", doctor(paths)),
        ("Configuration", configuration()),
        ("Agents", agents.as_ref().map_or_else(not_running, |list| of_agents(&list.agents))),
        ("Sessions", status.as_ref().map_or_else(not_running, |status| sessions(&status.sessions))),
        ("The end of the log", log(paths, installed.filter(|_| state.pid.is_some()))),
        ("Metrics", metrics(daemon.as_mut())),
    ];
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut text = format!(
        "# acpd report\n\nMade {now} by `acpctl report`. It holds no word of a conversation, no secret, and no name of \
         a person, a machine,\na session or a directory in which one works, as far as acpctl knows them. `{HIDDEN}` stands for what was \
         left out.\n"
    );
    for (title, part) in parts {
        // Writing to a string does not fail.
        let _ = write!(text, "\n## {title}\n\n{}\n", part.trim_end());
    }
    text
}

fn not_running() -> String {
    "acpd is not running, or does not answer.".to_owned()
}

fn asked<T: serde::de::DeserializeOwned>(daemon: &mut Connection, method: &str) -> Option<T> {
    daemon.call(method, &Empty {}).ok()
}

fn block(kind: &str, text: &str) -> String {
    let fence = "`".repeat(human::fence(text));
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end())
}

fn versions(status: Option<&Status>) -> String {
    let mut rows = vec![("acpctl", env!("CARGO_PKG_VERSION").to_owned())];
    rows.push(("acpd, installed", said(&mut programs::daemon(["--version"]))));
    rows.push((
        "acpd, running",
        status.map_or_else(
            || "not running".to_owned(),
            |Status { daemon, .. }| {
                let up = human::now().saturating_sub(daemon.since);
                format!("{}, for {}", daemon.version.raw(), human::duration(up))
            },
        ),
    ));
    rows.extend(machine::system().map(|system| ("system", system)));
    rows.extend(distribution().map(|name| ("distribution", name)));
    for name in ["TERM", "LANG", "SHELL"] {
        let value = env::var(name).unwrap_or_default();
        let last = value.rsplit('/').next().unwrap_or_default();
        rows.push((name, last.chars().take(40).collect()));
    }
    let is_ours = |name: &String| name.starts_with("ACPD_") || name.starts_with("ACPCTL_");
    let set: Vec<String> =
        env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_ours).collect();
    rows.push(("variables of acpd that are set", set.join(" ")));
    let lines = rows.iter().map(|(name, value)| format!("- {name}: {}", value.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

fn distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let mut bytes = output.map(|output| output.stdout).unwrap_or_default();
    bytes.truncate(MAX_OUTPUT_BYTES);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn doctor(paths: &Paths) -> String {
    let line = |Finding { check, state, text, .. }: &Finding| {
        // These findings quote agents and files of a shell.
        let quotes = ["agents", "login shell", "configuration"].contains(check);
        let hides = quotes && *state != Health::Ok;
        let text = if hides { before_quote(text.raw()) } else { text.raw().to_owned() };
        format!("{:<8} {check:<13} {text}\n", word(state))
    };
    block("text", &look(paths).iter().map(line).collect::<String>())
}

/// Returns acpd's words before a quotation.
fn before_quote(text: &str) -> String {
    match text.split_once([':', '`']) {
        Some((words, _)) => format!("{} {HIDDEN}", words.trim_end()),
        None => text.to_owned(),
    }
}

fn configuration() -> String {
    let output = programs::daemon(["config-redacted"]).output();
    match output {
        Ok(output) if output.status.success() => {
            match String::from_utf8_lossy(&output.stdout).trim() {
                "" => "There is none, or it is empty: everything has its default.".to_owned(),
                text => {
                    let note = "What is not there has its default (docs/configuration.md).";
                    format!("{note}\n\n{}", block("toml", text))
                }
            }
        }
        // The error does not quote the file.
        Ok(output) => block("text", &String::from_utf8_lossy(&output.stderr)),
        Err(_) => "The program acpd cannot be run.".to_owned(),
    }
}

fn of_agents(agents: &[AgentInfo]) -> String {
    let is_used =
        |agent: &&AgentInfo| agent.sessions > 0 || agent.pid.is_some() || agent.reason.is_some();
    let mut text =
        "agent          state         restarts sessions processes memory   version\n".to_owned();
    for agent in agents.iter().filter(is_used) {
        let state = word(&agent.state);
        let memory = agent.rss.map(human::bytes).map(|size| size.as_str().to_owned());
        let version = agent.version.as_ref().map_or("-", Untrusted::raw);
        let version: String = version.chars().take(MAX_VERSION_LENGTH).collect();
        let _ = writeln!(
            text,
            "{:<14} {state:<13} {:<8} {:<8} {:<9} {:<8} {version}",
            agent.name.raw(),
            agent.restarts,
            agent.sessions,
            agent.processes.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            memory.unwrap_or_else(|| "-".to_owned()),
        );
        if let Some(reason) = &agent.reason {
            let _ = writeln!(text, "               {}", before_quote(reason.raw()));
        }
    }
    let known = agents.iter().filter(|agent| agent.installed == Some(true)).count();
    format!("{known} of {} known agents are installed.\n\n{}", agents.len(), block("text", &text))
}

fn sessions(sessions: &[SessionInfo]) -> String {
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for session in sessions {
        *states.entry(word(&session.state)).or_default() += 1;
    }
    let counts: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let mut text =
        "agent          state      turn         last            prompts queued clients lines   used\n".to_owned();
    let now = human::now();
    for session in sessions.iter().take(MAX_SESSIONS) {
        let last = session.turn.last.as_ref().map_or("-", |last| Outcome::known_word(last.raw()));
        let _ = writeln!(
            text,
            "{:<14} {:<10} {:<12} {last:<15} {:<7} {:<6} {:<7} {:<7} {}",
            session.agent.raw(),
            word(&session.state),
            word(&session.turn.state),
            session.prompts,
            session.queued,
            session.clients,
            session.seq,
            human::ago(session.updated, now),
        );
    }
    format!("{}.\n\n{}", counts.join(", "), block("text", &text))
}

/// Returns the end of the log, from the service manager if it started the daemon.
fn log(paths: &Paths, manager: Option<&Service>) -> String {
    let log = match manager.map(|service| service.log_command(false, LOG_LINES)) {
        Some(Some(mut command)) => said(&mut command),
        Some(None) => service::log_file()
            .map_or_else(|_| String::new(), |file| log_file::last(&file, LOG_LINES)),
        None => log_file::last(&paths.daemon_log(), LOG_LINES),
    };
    if log.is_empty() {
        return "Nothing has been written.".to_owned();
    }
    let mut text = block("text", &clean(&log));
    let size = |path: &Path| path.metadata().map_or(0, |file| file.len());
    let agent = paths.agent_log("agent");
    let files = agent.parent().and_then(|dir| std::fs::read_dir(dir).ok());
    for file in files.into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let bytes = human::bytes(size(&file.path()));
        let _ = write!(text, "\n\n`{name}` has {bytes}; what agents write is not in this report.");
    }
    text
}

fn metrics(daemon: Option<&mut Connection>) -> String {
    let found = daemon.and_then(|daemon| asked::<Metrics>(daemon, method::METRICS));
    found.map_or_else(not_running, |found| block("text", prometheus::text(&found).as_str()))
}
