//! Logins of agents in tables and cards.

use acpd_api::{AgentInfo, AuthInfo, AuthSource, AuthState};
use anstyle::Style;

use crate::human;
use crate::paint::{BOLD, DIM, GREEN, Paint, YELLOW};
use crate::table::{Cell, Table};
use crate::text::{Text, text};

/// Logins as a table.
pub(crate) fn table(agents: &[AgentInfo], now: u64, paint: Paint, width: Option<usize>) -> Text {
    let mut table = Table::new(["AGENT", "LOGIN", "SINCE", "KNOWN FROM", "FIX"]);
    for AgentInfo { name, auth, .. } in agents {
        table.row([
            Cell::new(name, BOLD),
            Cell::new(word(auth.state), style(auth.state)),
            human::ago(auth.since, now).into(),
            auth.source.as_ref().map(known_from).unwrap_or_default().into(),
            text!("{}", auth.hint).into(),
        ]);
    }
    table.render(paint, width)
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

fn style(state: AuthState) -> Style {
    match state {
        AuthState::Unknown | AuthState::NotRequired => DIM,
        AuthState::Authenticated => GREEN,
        AuthState::NeedsLogin | AuthState::Expired => YELLOW,
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
