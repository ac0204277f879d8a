use acpd_api::{AgentInfo, AgentState, AuthInfo, AuthSource, AuthState, McpInfo, Untrusted};

use super::environment;
use crate::human;
use crate::text::{BOLD, Cut, Role, Table, Text, key_values, shell_word, text};

/// A reason may contain a whole `PATH`.
const REASON_WIDTH: usize = 60;

pub(crate) fn table<'a>(
    agents: impl IntoIterator<Item = &'a AgentInfo>,
    now: u64,
    width: Option<usize>,
) -> Text {
    let titles =
        ["AGENT", "STATE", "SINCE", "PID", "MEMORY", "PROCS", "RESTARTS", "SESSIONS", "REASON"];
    let row = |agent: &AgentInfo| {
        [
            Text::styled(BOLD, &agent.name),
            state_cell(agent),
            human::ago(agent.since, now),
            agent.pid.map(|pid| pids(pid, agent, " +", "")).unwrap_or_default(),
            agent.rss.map(human::bytes).unwrap_or_default(),
            text!("{}", agent.processes),
            text!("{}", agent.restarts),
            text!("{}", agent.sessions),
            text!("{}", reason(agent)).cut(REASON_WIDTH),
        ]
    };
    Table::new(titles, agents.into_iter().map(row))
        .cut("REASON", Cut::End(16))
        .drop(&["PROCS", "RESTARTS", "PID", "SINCE", "MEMORY", "SESSIONS"])
        .render(width)
}

/// Returns the state. A missing login is shown even while the agent does not run.
fn state_cell(agent: &AgentInfo) -> Text {
    match agent.state {
        AgentState::Stopped | AgentState::NeedsAuth if agent.auth.state.wants_login() => {
            Text::styled(Role::Warning, login_look(agent.auth.state).0)
        }
        state => styled(state),
    }
}

fn styled(state: AgentState) -> Text {
    let (word, style) = look(state);
    Text::styled(style, word)
}

/// Returns the reason of the state, or how to log in if only a login is missing. An agent that was
/// started again is ready until it gets a request.
fn reason(agent: &AgentInfo) -> Option<&Untrusted> {
    let (reason, hint) = (agent.reason.as_ref(), agent.auth.hint.as_ref());
    match agent.state {
        AgentState::Stopped | AgentState::NeedsAuth => hint.or(reason),
        _ => reason.or(hint),
    }
}

pub(crate) fn card(agent: &AgentInfo) -> Text {
    let since = (agent.since > 0).then(|| text!(" since {}", human::clock(agent.since)));
    let mut rows = vec![
        ("agent", text!("{} ({})", agent.name, agent.title)),
        ("state", text!("{}{}", styled(agent.state), since)),
    ];
    rows.extend(agent.reason.as_ref().map(|reason| ("reason", reason.into())));
    rows.push(("login", login_sentence(&agent.auth)));
    rows.push(match &agent.address {
        Some(address) => ("address", address.into()),
        None => ("command", Text::join(agent.command.iter().map(Text::from), " ")),
    });
    rows.extend(agent.version.as_ref().map(|version| ("version", version.into())));
    let preview = agent.protocol.filter(|version| !version.is_first());
    rows.extend(preview.map(|version| ("protocol", text!("{}, a preview", version.number()))));
    rows.extend(agent.pid.map(|pid| ("pid", pids(pid, agent, " and ", " more"))));
    rows.extend(agent.rss.map(|bytes| ("memory", memory(bytes, agent.processes))));
    rows.extend([
        ("sessions", text!("{}", agent.sessions)),
        ("restarts", text!("{}", agent.restarts)),
        ("log", (&agent.log).into()),
    ]);
    rows.extend(agent.mcp.iter().map(|server| ("mcp", mcp_line(server))));
    rows.extend(unsupported(agent).map(|text| ("missing", text)));
    let missing = environment::only_here(agent, None).or_else(|| environment::lacking(agent, None));
    rows.extend(missing.map(|missing| ("variables", missing)));
    rows.extend(agent.install.as_ref().map(|install| ("install", Text::from(install))));
    let hint = agent.hint.as_ref().or(agent.auth.hint.as_ref());
    rows.extend(hint.map(|hint| ("hint", Text::from(hint))));
    if !agent.tried {
        rows.push(("note", "this command is not tested by acpd's authors".into()));
    }
    key_values(&rows)
}

fn pids(pid: u32, agent: &AgentInfo, and: &'static str, more: &'static str) -> Text {
    match agent.other_pids.len() {
        0 => text!("{}", pid),
        others => text!("{}{}{}{}", pid, and, others, more),
    }
}

fn memory(bytes: u64, processes: Option<u32>) -> Text {
    match processes {
        None => human::bytes(bytes),
        Some(1) => text!("{} in 1 process", human::bytes(bytes)),
        Some(count) => text!("{} in {} processes", human::bytes(bytes), count),
    }
}

/// Describes methods that the agent announced and does not have, and when acpd tries them again.
fn unsupported(agent: &AgentInfo) -> Option<Text> {
    (!agent.unsupported.is_empty()).then(|| {
        let methods = Text::join(agent.unsupported.iter().map(Text::from), ", ");
        text!(
            "{}: announced but not supported; tried again with another version or after `acpctl agent restart {}`",
            methods,
            shell_word(&agent.name)
        )
    })
}

fn mcp_line(server: &McpInfo) -> Text {
    let globs = Text::join(server.workspace.iter().map(Text::from), ", ");
    let place = (!server.workspace.is_empty()).then(|| text!(" in {}", globs));
    let left_out = server.left_out.as_ref().map(|why| text!(": left out, {}", why));
    let kind: &'static str = server.kind.into();
    text!("{} ({}){}{}", server.name, kind, place, left_out)
}

pub(crate) fn look(state: AgentState) -> (&'static str, Role) {
    match state {
        AgentState::Stopped => ("stopped", Role::Dim),
        AgentState::Starting => ("starting", Role::Name),
        AgentState::Initializing => ("initializing", Role::Name),
        AgentState::NeedsAuth => ("needs login", Role::Warning),
        AgentState::Ready => ("ready", Role::Good),
        AgentState::Stopping => ("stopping", Role::Name),
        AgentState::Backoff => ("backoff", Role::Warning),
        AgentState::Failed => ("failed", Role::Bad),
    }
}

pub(crate) fn login_table(agents: &[AgentInfo], now: u64, width: Option<usize>) -> Text {
    let row = |AgentInfo { name, auth, .. }: &AgentInfo| {
        let (word, style) = login_look(auth.state);
        let from = auth.source.as_ref().map(known_from).unwrap_or_default();
        let (name, word) = (Text::styled(BOLD, name), Text::styled(style, word));
        [name, word, human::ago(auth.since, now), from, text!("{}", auth.hint)]
    };
    let titles = ["AGENT", "LOGIN", "SINCE", "KNOWN FROM", "FIX"];
    Table::new(titles, agents.iter().map(row)).render(width)
}

fn login_look(state: AuthState) -> (&'static str, Role) {
    match state {
        AuthState::Unknown => ("unknown", Role::Dim),
        AuthState::NotRequired => ("not needed", Role::Dim),
        AuthState::Authenticated => ("logged in", Role::Good),
        AuthState::NeedsLogin => ("needs login", Role::Warning),
        AuthState::Expired => ("login expired", Role::Warning),
    }
}

fn known_from(source: &AuthSource) -> Text {
    match source {
        AuthSource::Refused { method } => text!("`{}` was refused", method),
        AuthSource::Pattern { method } => text!("an error of `{}`", method),
        AuthSource::Worked { method } => text!("`{}` worked", method),
        AuthSource::Status => "the agent".into(),
        AuthSource::Login => "a login".into(),
        AuthSource::LoginFile => "its login file".into(),
        AuthSource::Logout => "a logout".into(),
    }
}

fn login_sentence(auth: &AuthInfo) -> Text {
    let since = (auth.since > 0).then(|| text!(" since {}", human::clock(auth.since)));
    let from = auth.source.as_ref().map(|source| text!(" ({})", known_from(source)));
    text!("{}{}{}", login_look(auth.state).0, since, from)
}
