//! Defaults of a directory: its last used session, and the agent of new sessions.

use acpd_api::{
    AgentInfo, AgentRef, DaemonInfo, ExitCode, SessionInfo, SessionList, SessionListParams, Status,
    StatusParams, escape, method,
};
use acpd_client::Connection;

use crate::error::{CommandError, Result};
use crate::text::text;

/// The agent that is there without being installed.
pub(crate) const DEMO: &str = "demo";

/// Parameters of `_acpd/session/list` for a directory.
pub(crate) fn of(cwd: &str, agent: Option<&str>) -> SessionListParams {
    let (agent, cwd) = (agent.map(str::to_owned), Some(cwd.to_owned()));
    SessionListParams { agent, cwd, ..SessionListParams::default() }
}

/// Returns whether the session was prompted and is not archived. A session that an editor has opened and left
/// does not count.
pub(crate) fn is_used(session: &SessionInfo) -> bool {
    session.prompts > 0 && !session.archived
}

/// The last used one of the list: the daemon puts it first.
pub(crate) fn used(list: SessionList) -> Option<SessionInfo> {
    list.sessions.into_iter().find(is_used)
}

pub(crate) fn none(cwd: &str, agent: Option<&str>) -> CommandError {
    let agent = agent.map(|agent| text!(" of `{}`", escape::one_line(agent)));
    let text = text!("no session{} in `{}` to continue", agent, escape::one_line(cwd));
    CommandError::new(ExitCode::NotFound, text)
        .hint("start one without `--continue`, or name one with `--session`")
}

/// The daemon as a directory sees it: with the agent of sessions that begin there.
pub(crate) fn daemon_for(cwd: &str, connection: &mut Connection) -> Result<DaemonInfo> {
    let params = StatusParams { cwd: Some(cwd.to_owned()) };
    let mut status: Status = connection.call(method::STATUS, &params)?;
    if status.daemon.default_is_found {
        // Answered when the environment of agents is known; before that the installed ones may be missing.
        let demo = AgentRef { agent: DEMO.to_owned() };
        connection.call::<_, AgentInfo>(method::AGENT_SHOW, &demo).ok();
        status = connection.call(method::STATUS, &params)?;
    }
    Ok(status.daemon)
}
