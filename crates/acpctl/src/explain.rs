//! Hints for an error of the daemon: a configuration that is not reloaded, a variable that the
//! daemon lacks, or a method of another version.

use acpd_api::{AgentInfo, AgentState, DaemonInfo, Empty, Reason, Status, method};

use crate::daemon::{agent as agent_info, info};
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::{daemon as about, environment};
use crate::live::Door;
use crate::text::{Text, text};

/// Adds hints that can be found.
pub(crate) fn explained(error: CommandError) -> CommandError {
    if error.is_unknown_method() {
        return of_another_version(error);
    }
    let is_explicable = matches!(
        error.reason,
        Some(
            Reason::AgentUnknown
                | Reason::AgentStartFailed
                | Reason::AgentExited
                | Reason::AgentCrashLoop
                | Reason::AgentTimeout
                | Reason::NeedsLogin
        )
    );
    if !is_explicable {
        return error;
    }
    let hints = hints().unwrap_or_default();
    hints.into_iter().fold(error, CommandError::hint)
}

fn of_another_version(error: CommandError) -> CommandError {
    let own = env!("CARGO_PKG_VERSION");
    let daemon = Door::here(false).connect().and_then(|mut connection| info(&mut connection));
    let error = match daemon {
        Ok(DaemonInfo { version, .. }) if version != *own => CommandError::new(
            error.code(),
            text!("the running acpd is {}, too different from acpctl {} for this", version, own),
        ),
        _ => error,
    };
    error.hint("run the installed acpd: `acpctl daemon restart`; agents and turns continue")
}

fn hints() -> Result<Vec<Text>> {
    let mut connection = Door::here(false).connect()?;
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    let now = human::now();
    let changed = status.daemon.config_changed.as_ref();
    let mut hints: Vec<Text> =
        changed.map(|changed| about::config_changed(changed, now)).into_iter().collect();
    let age = Some(now.saturating_sub(status.daemon.since));
    for agent in status.agents.iter().filter(|agent| is_in_trouble(agent)) {
        let agent = agent_info(&mut connection, agent.name.raw())?;
        let lacking = environment::only_here(&agent, age);
        let here = environment::found_here(&agent);
        hints.extend(here.or_else(|| environment::asked_in_vain(&agent)));
        hints.extend(lacking.or_else(|| environment::lacking(&agent, age)));
    }
    Ok(hints)
}

fn is_in_trouble(agent: &AgentInfo) -> bool {
    let state = agent.state;
    agent.auth.state.wants_login()
        || matches!(state, AgentState::NeedsAuth | AgentState::Backoff | AgentState::Failed)
}
