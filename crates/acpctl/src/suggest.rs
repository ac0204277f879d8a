//! Suggestions for verbs that do not exist.

use acpd_api::{escape, nearest};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::CommandError;
use crate::text::{Text, shell_word, text};

/// Verbs of other programs that end work.
const STOPS: [&str; 6] = ["stop", "kill", "interrupt", "abort", "halt", "terminate"];
const ELSEWHERE: &str = "to cancel a turn: `acpctl cancel SESSION`; \
    to stop an agent: `acpctl agent stop AGENT`; to stop acpd: `acpctl daemon stop`";

/// Names in other programs.
const CALLED: [(&[&str], &str); 10] = [
    (&["new", "prompt", "exec", "ask", "send"], "to prompt an agent: `acpctl run PROMPT`"),
    (
        &["list"],
        "sessions: `acpctl session ls`; agents: `acpctl agent ls`; what is active: `acpctl ps`",
    ),
    (&["sessions"], "did you mean `acpctl session ls`?"),
    (&["agents"], "did you mean `acpctl agent ls`?"),
    (
        &["logs"],
        "of a session: `acpctl session log SESSION`; of an agent: `acpctl agent logs AGENT`",
    ),
    (&["inspect", "info", "models", "describe"], "did you mean `acpctl session show SESSION`?"),
    (
        &["resume", "continue"],
        "to prompt it: `acpctl run -s SESSION PROMPT`; to follow it: `acpctl attach SESSION`",
    ),
    (&["steer"], "did you mean `acpctl run --steer SESSION PROMPT`?"),
    (&["version"], "did you mean `acpctl --version`?"),
    (&["reload"], "did you mean `acpctl daemon reload`?"),
];

pub(crate) fn instead(error: &clap::Error, definition: fn() -> Command) -> Option<CommandError> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let group = group(std::env::args().skip(1).take_while(|arg| arg != typed));
    Some(suggestion(typed, group, &definition()))
}

/// Returns the command without its subcommand; none at the top.
fn group(args: impl Iterator<Item = String>) -> Option<&'static str> {
    const GROUPS: [&str; 7] = ["session", "agent", "auth", "policy", "daemon", "config", "service"];
    let mut args = args.filter(|arg| !arg.starts_with('-'));
    args.find_map(|arg| GROUPS.into_iter().find(|group| *group == arg))
}

fn suggestion(typed: &str, group: Option<&'static str>, cli: &Command) -> CommandError {
    let command = group.and_then(|group| cli.find_subcommand(group)).unwrap_or(cli);
    let names = command
        .get_subcommands()
        .flat_map(|verb| std::iter::once(verb.get_name()).chain(verb.get_visible_aliases()));
    let full: Text = group.map(|group| text!(" {}", group)).unwrap_or_default();
    let error =
        CommandError::usage(text!("no command `acpctl{} {}`", full, escape::one_line(typed)));
    if group.is_none() && typed.trim().contains(char::is_whitespace) {
        let word = shell_word(&typed.into());
        return error.hint(text!("to prompt an agent: `acpctl run {}`", word));
    }
    if STOPS.contains(&typed) {
        return error.hint(ELSEWHERE);
    }
    let called = CALLED.iter().find(|(words, _)| words.contains(&typed));
    if let Some((_, hint)) = called.filter(|_| group.is_none()) {
        return error.hint(*hint);
    }
    if let Some(name) = nearest(typed, names) {
        return error.hint(text!("did you mean `acpctl{} {}`?", full, escape::one_line(name)));
    }
    // A verb of another group is the likeliest mistake.
    let other = cli
        .get_subcommands()
        .find(|other| other.get_name() != "help" && other.find_subcommand(typed).is_some());
    let top = cli.get_subcommands().find(|verb| verb.get_name() == typed);
    match (top.filter(|_| group.is_some()), other) {
        (Some(_), _) => error.hint(text!("did you mean `acpctl {}`?", escape::one_line(typed))),
        (None, Some(other)) => error.hint(text!(
            "did you mean `acpctl {} {}`?",
            escape::one_line(other.get_name()),
            escape::one_line(typed)
        )),
        (None, None) => error.hint(text!("`acpctl help{}` lists the commands", full)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::definition;

    fn hint(typed: &str, group: Option<&'static str>) -> String {
        let shown = suggestion(typed, group, &definition()).render();
        shown.as_str().split_once("hint: ").unwrap().1.trim_end().to_owned()
    }

    #[test]
    fn a_slip_is_near_and_a_verb_of_another_group_is_found() {
        assert_eq!(hint("sp", None), "did you mean `acpctl ps`?");
        assert_eq!(hint("atatch", None), "did you mean `acpctl attach`?");
        assert_eq!(hint("sohw", Some("session")), "did you mean `acpctl session show`?");
        assert_eq!(hint("archive", None), "did you mean `acpctl session archive`?");
        assert_eq!(hint("cancel", Some("session")), "did you mean `acpctl cancel`?");
        assert_eq!(hint("frobnicate", None), "`acpctl help` lists the commands");
        assert_eq!(hint("frobnicate", Some("policy")), "`acpctl help policy` lists the commands");
    }
}
