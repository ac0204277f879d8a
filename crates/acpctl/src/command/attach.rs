//! `acpctl attach`: follow a session and, with `--control`, answer its questions.

use acp_wire::{Message, parse};
use acpd_api::{ExitCode, Role, SessionInfo, TurnState, method};
use acpd_view::Settings;
use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::current_activity;
use crate::live::{Event, Live};
use crate::lookup::{Care, Which, find, or_last};
use crate::permission::{Questions, needs_action};
use crate::screen::Screen;
use crate::text::text;
use crate::ui::Ui;
use crate::watch::{End, Watch};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl attach" => "Follow the last used session: its history, then live output",
    "acpctl attach --control main" => "Also answer the agent's questions",
    "acpctl attach main --tail --until-idle" => "Show only new output, and exit when the session is idle",
))]
#[command(mut_arg("session", or_last))]
pub(super) struct Attach {
    #[command(flatten)]
    which: Which,
    /// Leave out the history.
    #[arg(long)]
    tail: bool,
    /// Answer the agent's questions here, with single keys.
    #[arg(long)]
    control: bool,
    /// Show the agent's thoughts.
    #[arg(long)]
    thoughts: bool,
    /// Exit when the session is idle, with the exit code of `run`.
    #[arg(long)]
    until_idle: bool,
    /// Print each message as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Follows until Ctrl-C, until the session is deleted or, with `--until-idle`, until it is idle.
pub(super) fn attach(args: &Attach, ui: &mut Ui) -> Result<ExitCode> {
    if args.control && !ui.can_ask() {
        return Err(CommandError::usage("`--control` reads single keys, which needs a terminal")
            .hint("answer with `acpctl allow` or `acpctl deny`, or leave out `--control`"));
    }
    let mut connection = ui.door().connect_lasting()?;
    let found = find(&mut connection, &args.which, Care::Guess, ui)?;
    let mut live = Live::new(connection)?;
    live.originals = !args.json;
    let role = if args.control { Role::Controller } else { Role::Observer };
    let hello = live.bind(&found.agent, role, [("subagents", json!({}))], ui)?;
    let after = if args.tail { None } else { Some(0) };
    let session = live.attach(found.exactly(), after, role, ui)?;
    if !args.json {
        let (handle, agent, cwd) = (session.handle(), &session.agent, &session.cwd);
        ui.say(text!("following {} ({}) in {}; Ctrl-C ends", handle, agent, cwd));
    }
    let mut questions = args.control.then(Questions::default);
    if session.turn.state == TurnState::NeedsAction {
        match &mut questions {
            Some(questions) => questions.look(&mut live)?,
            None => report_waiting(&session, args, ui),
        }
    }
    let mut screen = Screen::whole(args.thoughts);
    let settings = Settings::default();
    screen.transcript.open(&session.session_id, &session.cwd, Some(&hello), settings);
    let ended = show(live, args, &session, questions, &mut screen, ui);
    // Print the received part of an unfinished answer.
    screen.finish(ui)?;
    ended
}

/// An observer cannot answer, but should know why there is no output.
fn report_waiting(session: &SessionInfo, args: &Attach, ui: &mut Ui) {
    if !args.json {
        ui.warn(text!(
            "the agent is waiting for an answer: see `acpctl pending`, or answer here: \
             `acpctl attach --control {}`",
            session.handle()
        ));
    }
}

fn show(
    mut live: Live,
    args: &Attach,
    session: &SessionInfo,
    mut questions: Option<Questions>,
    screen: &mut Screen,
    ui: &mut Ui,
) -> Result<ExitCode> {
    let key = session.row_key();
    let mut watch: Option<Watch> = None;
    if args.until_idle && args.tail {
        watch.insert(Watch::of(session.clone())).look(&mut live)?;
    }
    let mut is_joined = false;
    loop {
        let line = match live.next(ui)? {
            Event::Line(line) => line,
            Event::Interrupt | Event::Detach => return Ok(ExitCode::Ok),
            Event::Late | Event::Link(_) => continue,
            Event::Key(key) => {
                if let Some(questions) = &mut questions {
                    questions.key(key, &mut live, ui)?;
                }
                continue;
            }
            Event::Ended(error) => return Err(error.into()),
        };
        let Ok(message) = parse(&line) else { continue };
        let is_caught_up = matches!(&message,
            Message::Notification { method, .. } if method == method::CAUGHT_UP);
        if let Some(watch) = &mut watch {
            watch.hear(&message, &mut live)?;
        }
        // Turns in the history have ended; only later notices count.
        if args.until_idle && is_caught_up {
            watch.get_or_insert_with(|| Watch::of(session.clone())).look(&mut live)?;
        }
        if is_caught_up && !is_joined {
            is_joined = true;
            if !args.json {
                ui.say(text!("now: {}", current_activity(session, human::now())));
            }
        }
        let is_shown = match &message {
            Message::Notification { .. } => true,
            Message::Request { .. } => args.control,
            Message::Response { .. } => false,
        };
        if args.json && is_shown {
            ui.json_relayed(&line)?;
        }
        if let Message::Notification { method: name, params } = &message {
            let params = params.unwrap_or(RawValue::NULL);
            let mut questions = questions.as_mut();
            let is_printed_later =
                questions.as_mut().is_some_and(|it| it.on_answered(name, params));
            if !args.json && !is_printed_later {
                screen.show(ui, name, params.get())?;
            }
            if name == method::SESSION_REMOVED {
                ui.say("the session was deleted");
                return Ok(if watch.is_some() { ExitCode::NotFound } else { ExitCode::Ok });
            }
        }
        match &mut questions {
            Some(questions) => questions.take(&message, Some(&key), &mut live, ui)?,
            // Each request needs an answer.
            None => match &message {
                Message::Request { id, method, .. } => live.refuse(id, method)?,
                Message::Notification { method, params: Some(params) }
                    if needs_action(method, params) =>
                {
                    report_waiting(session, args, ui);
                }
                _ => {}
            },
        }
        if let Some(end) = watch.as_ref().and_then(Watch::idle) {
            return ended(end);
        }
    }
}

/// Returns the exit code of an idle session, or why no turn began. The end of a turn is already
/// printed.
fn ended(end: End) -> Result<ExitCode> {
    match (end.word.raw(), end.error) {
        ("blocked" | "lost", Some(error)) => {
            let error = CommandError::new(end.code, error);
            Err(end.hint.into_iter().fold(error, CommandError::hint))
        }
        _ => Ok(end.code),
    }
}
