//! `acpctl trace`: the lines between acpd and an agent as they pass.

use acp_wire::{Message, parse};
use acpd_api::{Direction, Empty, ExitCode, LineKind, TraceParams, Traced, Untrusted, method};
use acpd_client::{Connection, read_result};
use clap::Args;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result};
use crate::human;
use crate::live::{Event, Live};
use crate::lookup::{Care, Which, find};
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
-> is from acpd, <- to acpd. Each line has its time, the other end, its kind, method and #ID, for answers the time since \
the request, and its size.

--full shows conversations. Environments, headers, MCP servers, logins, `_meta` and text that looks like a key are hidden; \
all other text of users and agents is shown.";
    "acpctl trace fix --method 'session/*'" => "Watch the messages of the session `fix`",
    "acpctl trace --agent claude --full" => "Watch all messages of an agent, with content",
))]
pub(super) struct Trace {
    /// Name, id, unique prefix of either, words of the title, or `-` for the last used session [default: `-`].
    session: Option<String>,
    /// All lines of this agent; with SESSION, look only among its sessions.
    #[arg(short, long)]
    agent: Option<String>,
    /// Also show the lines between acpd and its clients.
    #[arg(long)]
    clients: bool,
    /// Show the content of the lines, without secrets.
    #[arg(long)]
    full: bool,
    /// Only methods that match this pattern, and their answers: `session/*`.
    #[arg(long, value_name = "GLOB")]
    method: Option<String>,
    /// Print each line as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows lines until Ctrl-C, or until the daemon ends.
pub(super) fn trace(args: &Trace, ui: &mut Ui) -> Result<ExitCode> {
    let mut connection = ui.door().connect()?;
    let (of, params) = begin(args, &mut connection, ui)?;
    let mut live = Live::new(connection)?;
    let _: Empty = live.call(ui, method::TRACE, &params)?;
    ui.note(text!("tracing {}; Ctrl-C ends it", of));
    loop {
        let line = match live.next(ui)? {
            Event::Line(line) => line,
            Event::Interrupt | Event::Detach => return Ok(ExitCode::Cancelled),
            Event::Key(_) | Event::Late | Event::Link(_) => continue,
            Event::Ended(_) => {
                let text = "acpd has stopped or is restarting; the trace has ended";
                return Err(CommandError::new(ExitCode::Error, text).hint("start the trace again"));
            }
        };
        let Ok(Message::Notification { method, params: Some(params) }) = parse(&line) else {
            continue;
        };
        if method == method::TRACED {
            show(params, args.json, ui)?;
        }
    }
}

fn begin(args: &Trace, connection: &mut Connection, ui: &mut Ui) -> Result<(Text, TraceParams)> {
    let params = TraceParams {
        clients: args.clients,
        full: args.full,
        method: args.method.clone(),
        ..TraceParams::default()
    };
    if let (None, Some(agent)) = (&args.session, &args.agent) {
        let words = text!("agent `{}`", Untrusted::from(agent.as_str()));
        return Ok((words, TraceParams { agent: Some(agent.clone()), ..params }));
    }
    let session = args.session.clone().unwrap_or_else(|| "-".to_owned());
    let which = Which { session, agent: args.agent.clone() };
    let session = find(connection, &which, Care::Guess, ui)?;
    let words = text!("session `{}` of {}", session.handle(), session.agent);
    Ok((words, TraceParams { session: Some(session.exactly()), ..params }))
}

fn show(params: &RawValue, json: bool, ui: &mut Ui) -> Result {
    let traced: Traced = read_result(method::TRACED, params)?;
    if json {
        return Ok(ui.json_line(&traced)?);
    }
    if traced.missed > 0 {
        let words = text!(
            "... {} dropped: this terminal is too slow",
            human::counted(traced.missed, "line")
        );
        ui.print(text!("{}\n", Text::styled(Role::Warning, words)))?;
    }
    ui.print(text!("{}\n", line(&traced)))?;
    if let Some(message) = &traced.message {
        let message = Untrusted::from(message.get());
        ui.print(text!("    {}\n", Text::styled(Role::Dim, text!("{}", message.verbatim()))))?;
    }
    Ok(())
}

fn line(traced: &Traced) -> Text {
    let arrow = match traced.direction {
        Direction::ToAgent | Direction::ToClient => "->",
        Direction::FromAgent | Direction::FromClient => "<-",
    };
    let peer = match (&traced.agent, traced.client) {
        (_, Some(client)) => text!("client {}", client),
        (agent, None) => text!("{}", agent),
    };
    let (kind, style) = match traced.kind {
        LineKind::Request => ("request", Role::Name),
        LineKind::Notification => ("notice", Role::Dim),
        LineKind::Response => ("answer", Role::Dim),
        LineKind::Error => ("error", Role::Bad),
        LineKind::Unreadable => ("unreadable", Role::Bad),
    };
    let mut line = text!(
        "{} {} {} {}",
        Text::styled(Role::Dim, human::local(traced.at, "%H:%M:%S%.3f")),
        arrow,
        Text::styled(BOLD, peer),
        Text::styled(style, kind),
    );
    if let Some(method) = &traced.method {
        line += text!(" {}", method);
    }
    if let Some(update) = &traced.update {
        line += text!(" {}", update);
    }
    if let Some(id) = &traced.id {
        line += text!(" #{}", Untrusted::from(id.raw()));
    }
    if let Some(took) = traced.took {
        line += text!(" after {}", took_of(took));
    }
    line + Text::styled(Role::Dim, text!(" {}", human::bytes(traced.bytes)))
}

fn took_of(ms: f64) -> Text {
    if ms < 10.0 {
        Untrusted::from(format!("{ms:.1}ms")).into()
    } else if ms < 10_000.0 {
        Untrusted::from(format!("{ms:.0}ms")).into()
    } else {
        human::duration(ms as u64)
    }
}
