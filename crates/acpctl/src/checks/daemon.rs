//! The running daemon, its configuration and its journal.

use std::path::Path;

use acpd_api::{AgentList, Empty, GcParams, GcResult, Metrics, Status, StoreState, method};
use acpd_client::Connection;

use super::agents::{asks_nobody, lost, shims, surroundings, trouble, unsupported};
use super::{CONFIG, Finding};
use crate::configured;
use crate::error::Result;
use crate::human;
use crate::info::daemon::mistakes;
use crate::text::text;

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
pub(super) fn ask(daemon: &mut Connection, findings: &mut Vec<Finding>) -> Result<u32> {
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
