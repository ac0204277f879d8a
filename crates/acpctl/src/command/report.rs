//! `acpctl report`: a bug report without secrets, prompts and names.
//!
//! The content is chosen, not filtered: no word of a conversation and no value that a user or an
//! agent chose gets into a report ([`clean`], `acpd config-redacted`). The result is then searched
//! for possible secrets and for names of the user and the machine ([`without_names`]). A failed
//! part becomes a note; the others are written anyway.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf, is_separator};

use acpd_api::redact::{self, HIDDEN, is_secret_name};
use acpd_api::under_agent::ACP;
use acpd_api::{
    AgentInfo, AgentList, Empty, Metrics, Outcome, SessionInfo, Status, Untrusted, method,
};
use acpd_client::{Connection, Paths};
use acpd_sys::files::private_options;
use acpd_sys::machine;
use clap::{Args, ValueHint};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::checks::{Finding, Health, look};
use crate::confirm::{check_can_ask, confirm};
use crate::error::{CommandError, Result};
use crate::human::{self, word};
use crate::programs::{self, output_of};
use crate::service::Service;
use crate::text::{Text, text};
use crate::ui::Ui;
use crate::{log_file, prometheus};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
The report has versions, the system, the findings of `acpctl doctor`, the configured keys, the states of agents and \
sessions, the end of the daemon's log, and metrics. It has no conversations, no stderr of agents, no values of variables, \
headers or arguments, and no names of you, your machine, sessions or directories.";
    "acpctl report" => "Read it, then confirm to write it to a file here",
    "acpctl report --output - | less" => "Only read it",
))]
pub(super) struct Report {
    /// Write to this new file; `-` prints it [default: `acpd-report-TIME.md`].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Write it without showing it and without confirmation.
    #[arg(long)]
    yes: bool,
}

const DOING: &str = "writing a report";
const HINT: &str = "add `--yes`; `--output -` prints it";

pub(super) fn report(args: &Report, ui: &mut Ui) -> Result {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if !to_stdout && !args.yes {
        check_can_ask(ui, DOING, HINT)?;
    }
    let paths = Paths::discover()?;
    ui.spin("looking");
    let text = without_names(&redact::text(&all(&paths)));
    ui.stop_spinning();
    let shown = Untrusted::from(text.as_str());
    if to_stdout {
        return Ok(ui.print(text!("{}", shown.prose()))?);
    }
    let file = args.output.clone().unwrap_or_else(file_name);
    if !args.yes {
        ui.page();
        ui.print(text!("{}", shown.prose()))?;
        ui.finish()?;
        let prompt = text!("write this to `{}`? y/n > ", file);
        confirm(ui, DOING, HINT, &Text::new(), prompt)?;
    }
    write(&file, &text)?;
    ui.done(text!("written to `{}`: read it again before you send it", file))
}

fn file_name() -> PathBuf {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    PathBuf::from(format!("acpd-report-{now}.md"))
}

/// Only the owner can read the file.
fn write(file: &Path, text: &str) -> Result {
    let failed = |error: io::Error| CommandError::file("write", file, &error);
    let new = private_options().write(true).create_new(true).open(file);
    match new {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(failed(error).hint("`--output FILE` names another one"))
        }
        new => new.and_then(|mut new| new.write_all(text.as_bytes())).map_err(failed),
    }
}

const LOG_LINES: usize = 200;
/// Last bytes of these lines.
const MAX_LOG_BYTES: usize = 1 << 20;
const MAX_SESSIONS: usize = 50;
const MAX_VERSION_LENGTH: usize = 60;

fn all(paths: &Paths) -> String {
    let service = Service::here(paths).ok();
    let installed = service.as_ref().filter(|service| service.is_installed());
    let state = installed.and_then(|service| service.state().ok()).unwrap_or_default();
    let mut daemon = state.running(paths).ok().flatten();
    let status: Option<Status> = asked(daemon.as_mut(), method::STATUS);
    let agents: Option<AgentList> = asked(daemon.as_mut(), method::AGENT_LIST);
    let metrics: Option<Metrics> = asked(daemon.as_mut(), method::METRICS);
    let parts = [
        ("Versions", versions(status.as_ref())),
        ("What `acpctl doctor` finds", doctor(paths)),
        ("Configuration", configuration()),
        ("Agents", agents.as_ref().map_or_else(not_running, |list| of_agents(&list.agents))),
        ("Sessions", status.as_ref().map_or_else(not_running, |status| sessions(&status.sessions))),
        ("The end of the log", log(paths, installed.filter(|_| state.pid.is_some()))),
        (
            "Metrics",
            metrics.map_or_else(not_running, |metrics| {
                block("text", prometheus::text(&metrics).as_str())
            }),
        ),
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

fn asked<T: DeserializeOwned>(daemon: Option<&mut Connection>, method: &str) -> Option<T> {
    daemon?.call(method, &Empty {}).ok()
}

fn block(kind: &str, text: &str) -> String {
    let fence = "`".repeat(human::fence(text));
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end())
}

fn versions(status: Option<&Status>) -> String {
    let running = status.map(|Status { daemon, .. }| {
        let up = human::now().saturating_sub(daemon.since);
        format!("{}, for {}", daemon.version.raw(), human::duration(up))
    });
    let mut rows = vec![
        ("acpctl", env!("CARGO_PKG_VERSION").to_owned()),
        ("acpd, installed", output_of(&mut programs::daemon(["--version"])).unwrap_or_default()),
        ("acpd, running", running.unwrap_or_else(|| "not running".to_owned())),
    ];
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

fn doctor(paths: &Paths) -> String {
    let line = |Finding { check, state, text, .. }: &Finding| {
        // These findings quote agents and files of a shell.
        let quotes = ["agents", "login shell", "configuration"].contains(&check.raw());
        let hides = quotes && *state != Health::Ok;
        let text = if hides { before_quote(text.raw()) } else { text.raw().to_owned() };
        format!("{:<8} {:<13} {text}\n", word(state), check.raw())
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
    let log = match manager {
        Some(service) => service.last_log(LOG_LINES),
        None => log_file::last(&paths.daemon_log(), LOG_LINES),
    };
    if log.is_empty() {
        return "Nothing has been written.".to_owned();
    }
    let from = log.ceil_char_boundary(log.len().saturating_sub(MAX_LOG_BYTES));
    let mut text = block("text", &clean(&log[from..]));
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

const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
/// Fields with acpd's own words or names. A value of `what` is shown if it is a method of ACP.
const SHOWN: [&str; 6] = ["signal", "agent", "level", "before", "status", "version"];
/// Replacement for lines that are not entries, such as a panic.
const NO_ENTRY: &str = "[a line that is no entry of the log]";

/// Returns the lines of the daemon's log without text of agents, hooks and the system.
///
/// ```text
///  2026-11-23T09:17:31Z  WARN an agent failed agent="claude" code=-32603 what="session/load"
///  └ time ┘             └level┘ └ message ┘    └ fields: a name, `=`, and a number or a quoted text ┘
/// ```
fn clean(log: &str) -> String {
    log.lines().map(|line| entry(line).unwrap_or_else(|| NO_ENTRY.to_owned()) + "\n").collect()
}

fn entry(line: &str) -> Option<String> {
    // A service manager puts its own words before the entry.
    let level = |level: &&'static str| Some((line.find(&format!(" {level} "))?, *level));
    let (at, level) = LEVELS.iter().find_map(level)?;
    let time = line[..at].split_whitespace().next_back()?;
    if !time.ends_with('Z') || !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = line[at + level.len() + 2..].trim();
    let said = if rest.contains(" hook=") { HIDDEN.to_owned() } else { event(rest) };
    Some(format!("{time} {level} {said}"))
}

fn event(text: &str) -> String {
    let fields = field_at(text).unwrap_or(text.len());
    let (words, mut rest) = text.split_at(fields);
    let mut out = message(words);
    while let Some((name, value)) = rest.trim_start().split_once('=') {
        let shown = if let Some(quoted) = value.strip_prefix('"') {
            let Some(end) = end_of(quoted) else { break };
            let text = &quoted[..end];
            rest = &quoted[end + 1..];
            let is_method = ACP.iter().any(|(method, ..)| *method == text);
            let is_shown = SHOWN.contains(&name) || (name == "what" && is_method);
            is_shown.then(|| format!("\"{}\"", message(text)))
        } else {
            let (word, after) = value.split_at(value.find(' ').unwrap_or(value.len()));
            let is_plain = is_plain(word);
            // The end of another value is unknown.
            rest = if is_plain { after } else { "" };
            is_plain.then(|| word.to_owned())
        };
        out.extend([" ", name, "=", shown.as_deref().unwrap_or(HIDDEN)]);
    }
    out
}

/// Returns where the fields begin.
fn field_at(text: &str) -> Option<usize> {
    text.match_indices('=').find_map(|(at, _)| {
        let (before, name) = text[..at].rsplit_once(' ').unwrap_or(("", &text[..at]));
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then_some(before.len())
    })
}

/// Returns acpd's words without quoted text, which is between backticks or after a colon.
fn message(words: &str) -> String {
    let (words, more) = match words.split_once(": ") {
        Some((words, _)) => (words, format!(": {HIDDEN}")),
        None => (words, String::new()),
    };
    let mut parts = words.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(_quoted) = parts.next() {
        out.extend(["`", HIDDEN, "`", parts.next().unwrap_or_default()]);
    }
    out.trim_end().to_owned() + &more
}

fn end_of(quoted: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        quoted[..*at].bytes().rev().take_while(|b| *b == b'\\').count().is_multiple_of(2)
    };
    quoted.match_indices('"').map(|(at, _)| at).find(is_end)
}

fn is_plain(word: &str) -> bool {
    let word = word.strip_prefix("Some(").and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    matches!(word, "true" | "false" | "None") || word.parse::<f64>().is_ok()
}

/// Shorter values are not replaced: they occur in many words.
const MIN_SECRET_LENGTH: usize = 6;

/// Returns names of this user and machine, and secrets in the environment, each with its
/// replacement.
fn names() -> Vec<(String, &'static str)> {
    let variable = |name: &str| env::var(name).ok();
    let home = env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
    let home = home.map(|home| home.trim_end_matches(is_separator).to_owned());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let of_home = home.as_deref().and_then(|home| home.rsplit(is_separator).next());
    let of_home = of_home.map(str::to_owned);
    let host = acpd_sys::machine::host_name();
    let short = host.as_deref().and_then(|host| host.split('.').next()).map(str::to_owned);
    let secrets = env::vars_os().filter_map(|(name, value)| {
        let is_secret = name.to_str().is_some_and(is_secret_name);
        value.into_string().ok().filter(|value| is_secret && value.len() >= MIN_SECRET_LENGTH)
    });
    let secrets = secrets.map(|secret| (Some(secret), HIDDEN));
    let names = [(home, "~"), (user, "USER"), (of_home, "USER"), (host, "HOST"), (short, "HOST")];
    let all = secrets.chain(names).filter_map(|(name, instead)| Some((name?, instead)));
    all.filter(|(name, _)| !name.is_empty()).collect()
}

/// Replaces names that are whole words.
fn without_names(text: &str) -> String {
    names().iter().fold(text.to_owned(), |text, (name, instead)| replaced(&text, name, instead))
}

fn replaced(text: &str, name: &str, instead: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (at, found) in text.match_indices(name) {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        let is_inside = is_part(before.chars().next_back()) && is_part(name.chars().next());
        let goes_on = is_part(after.chars().next()) && is_part(name.chars().next_back());
        if !is_inside && !goes_on {
            out.extend([&text[from..at], instead]);
            from = at + found.len();
        }
    }
    out + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acpd_says_is_shown_and_what_it_quotes_is_not() {
        let log = "\
2026-11-23T09:17:31.1Z  INFO acpd is ready pid=17
2026-11-23T09:17:31.1Z  WARN an agent failed agent=\"cl\" session=\"x planted\" code=Some(-32603) what=\"session/load\"
2026-11-23T09:17:31.1Z ERROR the journal cannot be written; trying again reason=\"planted \\\" planted\" code=None
2026-11-23T09:17:31.1Z  WARN the machine is not kept awake: planted
2026-11-23T09:17:31.1Z  WARN cannot start `planted` now
2026-11-23T09:17:31.1Z  WARN an agent failed what=\"_planted/method\"
2026-11-23T09:17:31.1Z  INFO planted words x=1 hook=\"on_turn_end\"
2026-11-23T09:17:31.1Z  WARN no index error=planted is code=7
Nov 23 09:17:31 planted acpd[1]: 2026-11-23T09:17:31Z  INFO an agent has ended host=3 status=\"exit code 1\"
planted INFO planted
thread planted panicked
";
        assert_eq!(
            clean(log),
            "\
2026-11-23T09:17:31.1Z INFO acpd is ready pid=17
2026-11-23T09:17:31.1Z WARN an agent failed agent=\"cl\" session=[hidden] code=Some(-32603) what=\"session/load\"
2026-11-23T09:17:31.1Z ERROR the journal cannot be written; trying again reason=[hidden] code=None
2026-11-23T09:17:31.1Z WARN the machine is not kept awake: [hidden]
2026-11-23T09:17:31.1Z WARN cannot start `[hidden]` now
2026-11-23T09:17:31.1Z WARN an agent failed what=[hidden]
2026-11-23T09:17:31.1Z INFO [hidden]
2026-11-23T09:17:31.1Z WARN no index error=[hidden]
2026-11-23T09:17:31Z INFO an agent has ended host=3 status=\"exit code 1\"
[a line that is no entry of the log]
[a line that is no entry of the log]
"
        );
    }

    #[test]
    fn whole_words_are_replaced_and_parts_of_others_stay() {
        let names = [("/home/ada", "~"), ("ada", "USER"), ("box", "HOST"), ("hunter2", HIDDEN)];
        let text = "/home/ada/x of ada@box, adamant boxes and box.local; /home/adam hunter2!";
        let clean = "~/x of USER@HOST, adamant boxes and HOST.local; /home/adam [hidden]!";
        let shown =
            names.iter().fold(text.to_owned(), |text, (name, by)| replaced(&text, name, by));
        assert_eq!(shown, clean);
    }
}
