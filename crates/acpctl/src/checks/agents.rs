//! Agents, their shims and their environment.

use std::path::Path;
use std::time::Duration;

use acpd_api::{AgentInfo, AgentState, ShimInfo, Untrusted};
use acpd_client::Connection;

use super::Finding;
use crate::daemon::agent as agent_info;
use crate::human;
use crate::info::environment::found_here;
use crate::text::{shell_word, text};

const SSH_AGENT: Duration = Duration::from_secs(1);

/// The daemon's reason for an agent that the user stopped.
const BY_PERSON: &str = "stopped by a person";

/// Finds methods that an agent announced and does not have. Its sessions may be restored with only
/// a summary.
pub(super) fn unsupported(agent: &AgentInfo) -> Option<Finding> {
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

/// Tells which agents speak a preview of the protocol.
pub(super) fn preview(agent: &AgentInfo) -> Option<Finding> {
    let version = agent.protocol.filter(|version| !version.is_first())?.number();
    let text = format!("{} speaks version {version} of the protocol, a preview", agent.name.raw());
    Some(Finding::ok("protocol", text))
}

/// Ids of modes that act without asking, in claude, codex, copilot, gemini, qwen and opencode.
const SILENT_MODES: &str = "auto autoedit acceptedits bypasspermissions dontask yolo autopilot \
                            fullaccess agentfullaccess dangerfullaccess allowall";

/// Finds an agent whose sessions start in a mode that does not ask. A new version may have changed
/// that mode.
pub(super) fn asks_nobody(agent: &AgentInfo) -> Option<Finding> {
    let mode = agent.default_mode.as_ref()?;
    // Copilot's ids are addresses.
    let id = mode.raw().rsplit('#').next().unwrap_or_default().to_ascii_lowercase();
    let id = id.replace(['-', '_', ' '], "");
    if !SILENT_MODES.split(' ').any(|silent| silent == id) {
        return None;
    }
    let (name, mode) = (agent.name.raw(), mode.raw());
    let text = format!("{name} starts sessions in mode `{mode}`, which acts without asking");
    let fix = format!(
        "set `mode = \"default\"` (`acpctl session mode SESSION` lists the modes) in `[agents.{name}]`: acpctl config edit"
    );
    Some(Finding::warning("agents", text).fix(fix))
}

/// Finds problems in the environment of agents. The daemon answers after its login shell, because
/// before that it does not know which agents are installed.
pub(super) fn surroundings(daemon: &mut Connection, default: &Untrusted) -> Vec<Finding> {
    let Ok(agent) = agent_info(daemon, default.raw()) else { return Vec::new() };
    let login_shell = agent.login_shell.as_ref().and_then(|shell| shell.problem.as_ref());
    let login_shell = login_shell.map(|why| {
        let text = format!("did not report its environment: {}", why.raw());
        let fix = "fix its startup files, or skip the slow part where ACPD_RESOLVING_ENVIRONMENT is set; \
                   acpd tries again at the next start of an agent";
        Finding::warning("login shell", text).fix(fix)
    });
    login_shell.into_iter().chain(ssh_agent(&agent)).collect()
}

/// Finds a closed SSH agent in the environment, such as that of an ended login.
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

/// Finds outdated shims. A shim is as old as its agent.
pub(super) fn shims(agents: &[AgentInfo], current: &str) -> Vec<Finding> {
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

pub(super) fn trouble(agent: &AgentInfo, default: &Untrusted, is_named: bool) -> Option<Finding> {
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

/// Returns whether the agent's last process ended by itself and was not restarted.
fn has_died(agent: &AgentInfo) -> bool {
    let by_person = |why: &Untrusted| *why == BY_PERSON;
    agent.state == AgentState::Stopped && agent.reason.as_ref().is_some_and(|why| !by_person(why))
}

/// Finds a configured agent whose program is missing or cannot be run, even if the agent was never
/// started.
pub(super) fn lost(daemon: &mut Connection, agent: &AgentInfo) -> Option<Finding> {
    let name = agent.name.raw();
    let agent = agent_info(daemon, name).ok()?;
    let text = format!("{name}: {}", agent.not_found.as_ref()?.raw());
    let found = match &agent.install {
        // The configuration of a known agent may be meant for another machine.
        Some(_) => Finding::warning("agents", text),
        None => Finding::problem("agents", text),
    };
    let edit = || {
        let text = text!("set `command` in `[agents.{}]`: acpctl config edit", agent.name);
        Untrusted::from(text.as_str())
    };
    let here = found_here(&agent).map(|text| Untrusted::from(text.as_str()));
    Some(found.fix(here.or_else(|| agent.install.clone()).unwrap_or_else(edit)))
}

#[cfg(test)]
mod tests {
    use super::super::Health;
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
