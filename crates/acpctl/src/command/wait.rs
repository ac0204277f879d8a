//! `acpctl wait`: waits until sessions are idle.

use std::time::{Duration, Instant};

use acp_wire::parse;
use acpd_api::{ExitCode, Role, SessionInfo, TurnState, Untrusted};
use acpd_client::LinkError;
use clap::Args;
use serde::Serialize;

use crate::error::{CommandError, Result};
use crate::human;
use crate::live::{Event, Live};
use crate::lookup::{Care, Which, find};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;
use crate::watch::Watch;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Prints a line for each idle session: its name or id, and how its last turn ended (`end_turn`, `cancelled`, \
`interrupted`, …). The exit code is that of `run`; of several sessions, the first failure counts.";
    "acpctl wait main docs --timeout 30m" => "Wait for both, at most half an hour",
    "acpctl wait main docs --any" => "Wait for the first of them",
))]
pub(super) struct Wait {
    /// Names, ids, unique prefixes of either, words of a title, or `-` for the last used session [default: `-`].
    #[arg(value_name = "SESSION", default_value = "-", hide_default_value = true)]
    sessions: Vec<String>,
    /// Look only among sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Wait for the first of them, not for all.
    #[arg(long)]
    any: bool,
    /// Wait at most this long, such as 90s or 10m; then exit with 124.
    #[arg(long, value_name = "DURATION", value_parser = human::read_duration)]
    timeout: Option<Duration>,
    /// Print a line of JSON for each idle session.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Over<'a> {
    session_id: &'a Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a Untrusted>,
    agent: &'a Untrusted,
    last: &'a Untrusted,
    exit_code: u8,
}

pub(super) fn wait(args: &Wait, ui: &mut Ui) -> Result<ExitCode> {
    let start = Instant::now();
    let mut connection = ui.door().connect_lasting()?;
    let mut waited: Vec<Watch> = Vec::new();
    for session in &args.sessions {
        let which = Which { session: session.clone(), agent: args.agent.clone() };
        let session = find(&mut connection, &which, Care::Guess, ui)?;
        let mut others = waited.iter().map(|other| &other.session);
        match others.find(|other| other.session_id == session.session_id) {
            Some(other) if other.agent != session.agent => return Err(same_id(other, &session)),
            Some(_) => {}
            None => waited.push(Watch::of(session)),
        }
    }
    let mut live = Live::new(connection)?;
    if let Some(timeout) = args.timeout {
        live.end_after(timeout.saturating_sub(start.elapsed()))?;
    }
    check(&mut waited, args.json, ui)?;
    if !is_over(&waited, args.any) {
        follow(&mut live, &mut waited, ui)?;
    }
    while !is_over(&waited, args.any) {
        match live.next(ui)? {
            Event::Line(line) => {
                let Ok(message) = parse(&line) else { continue };
                for one in waited.iter_mut().filter(|one| one.end.is_none()) {
                    one.hear(&message, &mut live)?;
                }
                check(&mut waited, args.json, ui)?;
            }
            Event::Interrupt | Event::Detach => {
                return Err(CommandError::new(
                    ExitCode::Cancelled,
                    "stopped waiting; the turns continue",
                ));
            }
            Event::Late => return Err(late(&waited, args.timeout)),
            Event::Key(_) | Event::Link(_) => {}
            Event::Ended(LinkError::Closed) => {
                let text = "acpd closed the connection; the outcome of the turns is unknown";
                return Err(CommandError::new(ExitCode::OutcomeUnknown, text)
                    .hint("wait again: `acpctl wait`"));
            }
            Event::Ended(error) => {
                return Err(CommandError::from(error).with_code(ExitCode::OutcomeUnknown));
            }
        }
    }
    // In the order of the arguments, the first failure decides.
    let codes = waited.iter().filter_map(|one| one.end.as_ref()).map(|end| end.code);
    Ok(codes.into_iter().find(|code| *code != ExitCode::Ok).unwrap_or(ExitCode::Ok))
}

/// Notices name a session by its id only, so one connection cannot watch both.
fn same_id(one: &SessionInfo, other: &SessionInfo) -> CommandError {
    let both = [one, other].map(|it| text!("`{}` of {}", it.handle(), it.agent));
    CommandError::usage(text!("{} have the same id", Text::join(both, " and ")))
        .hint("wait for each on its own: `acpctl wait --agent AGENT SESSION`")
}

fn is_over(waited: &[Watch], any: bool) -> bool {
    let mut over = waited.iter().map(|one| one.end.is_some());
    if any { over.any(|over| over) } else { over.all(|over| over) }
}

fn follow(live: &mut Live, waited: &mut [Watch], ui: &mut Ui) -> Result {
    for (at, one) in waited.iter_mut().filter(|one| one.end.is_none()).enumerate() {
        if at == 0 {
            live.bind(&one.session.agent, Role::Observer, [], ui)?;
        }
        let is_reported = one.is_reported;
        *one = Watch::begin(&one.session, live, ui)?;
        one.is_reported = is_reported;
    }
    // Notices before the last answer were dropped.
    for one in waited.iter_mut().filter(|one| one.end.is_none()) {
        one.look(live)?;
    }
    ui.spin("waiting");
    Ok(())
}

/// Prints each idle session once, and reports sessions that wait for the user.
fn check(waited: &mut [Watch], json: bool, ui: &mut Ui) -> Result {
    for one in waited.iter_mut().filter(|one| one.end.is_none()) {
        let name = one.session.handle().clone();
        if let Some(end) = one.idle() {
            if json {
                let session = &one.session;
                ui.json_line(&Over {
                    session_id: &session.session_id,
                    name: session.name.as_ref(),
                    agent: &session.agent,
                    last: &end.word,
                    exit_code: end.code.code(),
                })?;
            } else {
                ui.print(text!("{} {}\n", name, end.word))?;
            }
            if let Some(error) = &end.error {
                ui.say(error);
            }
            if let Some(hint) = &end.hint {
                ui.say(text!("hint: {}", hint));
            }
            one.end = Some(end);
        } else if (one.session.turn.state == TurnState::NeedsAction) != one.is_reported {
            one.is_reported = !one.is_reported;
            if one.is_reported {
                ui.warn(text!(
                    "{} is waiting for you: `acpctl pending {}`",
                    name,
                    shell_word(&name)
                ));
            }
        }
    }
    ui.flush()?;
    Ok(())
}

fn late(waited: &[Watch], timeout: Option<Duration>) -> CommandError {
    let left = waited.iter().filter(|one| one.end.is_none());
    let names: Vec<_> = left.map(|one| one.session.handle()).collect();
    let after = timeout
        .filter(|time| time.as_secs() > 0)
        .map(|time| text!(" after {}", human::duration(time.as_millis() as u64)));
    let all = Text::join(names.iter().map(|name| Text::from(*name)), ", ");
    let text = text!("timed out{}; still working: {}", after, all);
    let word = names.first().map_or_else(|| "SESSION".into(), |name| shell_word(name));
    CommandError::new(ExitCode::TimedOut, text).hint(text!(
        "follow it: `acpctl attach {}`; cancel it: `acpctl cancel {}`",
        word,
        word
    ))
}
