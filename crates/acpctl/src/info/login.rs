//! Logins of agents in tables and cards.

use acpd_api::{AgentInfo, AuthInfo, AuthSource, AuthState};

use crate::human;
use crate::text::{BOLD, Role, Table, Text, text};

pub(crate) fn table(agents: &[AgentInfo], now: u64, width: Option<usize>) -> Text {
    let mut table = Table::new(["AGENT", "LOGIN", "SINCE", "KNOWN FROM", "FIX"]);
    for AgentInfo { name, auth, .. } in agents {
        let (word, style) = look(auth.state);
        table.row([
            Text::styled(BOLD, name),
            Text::styled(style, word),
            human::ago(auth.since, now),
            auth.source.as_ref().map(known_from).unwrap_or_default(),
            text!("{}", auth.hint),
        ]);
    }
    table.render(width)
}

/// The word and the style of a state.
pub(crate) fn look(state: AuthState) -> (&'static str, Role) {
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

/// Everything about a login in one line.
pub(crate) fn sentence(auth: &AuthInfo) -> Text {
    let since = match auth.since {
        0 => Text::new(),
        since => text!(" since {}", human::clock(since)),
    };
    let from = auth.source.as_ref().map(|source| text!(" ({})", known_from(source)));
    text!("{}{}{}", look(auth.state).0, since, from)
}
