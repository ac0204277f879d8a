//! Logins of agents in tables and cards.

use acpd_api::{AgentInfo, AuthInfo, AuthSource, AuthState};

use crate::human;
use crate::text::{BOLD, Role, Table, Text, text};

/// Logins as a table.
pub(crate) fn table(agents: &[AgentInfo], now: u64, width: Option<usize>) -> Text {
    let mut table = Table::new(["AGENT", "LOGIN", "SINCE", "KNOWN FROM", "FIX"]);
    for AgentInfo { name, auth, .. } in agents {
        table.row([
            Text::styled(BOLD, name),
            Text::styled(style(auth.state), word(auth.state)),
            human::ago(auth.since, now),
            auth.source.as_ref().map(known_from).unwrap_or_default(),
            text!("{}", auth.hint),
        ]);
    }
    table.render(width)
}

/// The state for people.
pub(crate) fn word(state: AuthState) -> &'static str {
    match state {
        AuthState::Unknown => "unknown",
        AuthState::NotRequired => "not needed",
        AuthState::Authenticated => "logged in",
        AuthState::NeedsLogin => "needs login",
        AuthState::Expired => "login expired",
    }
}

fn style(state: AuthState) -> Role {
    match state {
        AuthState::Unknown | AuthState::NotRequired => Role::Dim,
        AuthState::Authenticated => Role::Good,
        AuthState::NeedsLogin | AuthState::Expired => Role::Warning,
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

/// Everything about a login in one line.
pub(crate) fn sentence(auth: &AuthInfo) -> Text {
    let since = match auth.since {
        0 => Text::new(),
        since => text!(" since {}", human::clock(since)),
    };
    let from = auth.source.as_ref().map(|source| text!(" ({})", known_from(source)));
    text!("{}{}{}", word(auth.state), since, from)
}
