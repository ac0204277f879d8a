use acpd_api::{ConfigChanged, ConfigMistake, DaemonInfo, HostState, StoreState};

use crate::human;
use crate::text::{BOLD, Role, Text, text};

/// Describes the daemon in one line, with more lines if the journal cannot be written or the
/// configuration has changed.
pub(crate) fn line(daemon: &DaemonInfo, now: u64) -> Text {
    let mut parts = vec![
        text!("{} {}", Text::styled(BOLD, "acpd"), daemon.version),
        Text::styled(Role::Good, "running"),
        text!("pid {}", daemon.pid),
        text!("up {}", human::duration(now.saturating_sub(daemon.since))),
    ];
    parts.extend(daemon.rss.map(human::bytes));
    parts.push(human::counted(daemon.clients, "client"));
    let mut text = Text::join(parts, "  ") + "\n";
    if let Some(budget) = &daemon.budget {
        let line =
            text!("budget: {} of {} spent today", budget.spent, human::costs([&budget.per_day]));
        text += Text::styled(if budget.is_over { Role::Warning } else { Role::Dim }, line) + "\n";
    }
    if let StoreState::Failing { reason, hint, since } = &daemon.store {
        let line = text!(
            "cannot write its journal: {} (since {}); nothing new is shown until then",
            reason,
            human::ago(*since, now),
        );
        text += Text::styled(Role::Bad, line) + "\n";
        if let Some(hint) = hint {
            text += text!("hint: {}\n", hint);
        }
    }
    if let Some(changed) = &daemon.config_changed {
        text += Text::styled(Role::Warning, config_changed(changed, now)) + "\n";
    }
    text
}

/// Returns a line for each machine that cannot be reached.
pub(crate) fn unreachable(hosts: &[HostState]) -> Text {
    let errors = hosts.iter().filter_map(|host| host.error.as_ref());
    errors.map(|error| Text::styled(Role::Warning, error) + "\n").collect()
}

pub(crate) fn config_changed(changed: &ConfigChanged, now: u64) -> Text {
    let what = match changed.at {
        Some(at) => text!("the configuration was changed {}", human::ago(at, now)),
        None => "the configuration file is gone".into(),
    };
    if changed.mistakes.is_empty() {
        return text!("{} and is not reloaded yet: `acpctl daemon reload`", what);
    }
    let text = "and is invalid, so acpd uses the old one and could not restart:";
    text!("{} {}{}", what, text, mistakes(&changed.mistakes))
}

pub(crate) fn mistakes(mistakes: &[ConfigMistake]) -> Text {
    let line = |mistake: &ConfigMistake| {
        let hint = mistake.hint.as_ref().map(|hint| text!("\n    hint: {}", hint));
        text!("\n  {}{}", mistake.told(), hint)
    };
    mistakes.iter().map(line).collect()
}
