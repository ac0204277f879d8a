//! `acpctl attach`: follow a session.

use acp_wire::{Message, parse};
use acpd_api::{AttachParams, AttachResult, ClientMeta, Role, SessionInfo, SessionRef, method};
use acpd_client::Connection;

use super::{Door, which};
use crate::cli;
use crate::error::{Result, gone};
use crate::live::{Event, Live};
use crate::screen::Screen;
use crate::ui::Ui;

/// Follows until Ctrl-C, or until the session is deleted.
pub(super) fn attach(args: &cli::Attach, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    // Bound to the session's own agent, so that no other one is asked what it can do.
    let found: SessionInfo = connection.call(method::SESSION_SHOW, &which(&args.which)?)?;
    let agent = Some(found.agent);
    let meta = ClientMeta { agent: agent.clone(), notices: true, seq: true, max_line: None };
    connection.initialize(&meta, "acpctl")?;
    let after = if args.tail { None } else { Some(0) };
    let session = SessionRef { session: found.session_id, agent, ..SessionRef::default() };
    let params = AttachParams { session, after, role: Role::Observer };
    let result: AttachResult = connection.call(method::SESSION_ATTACH, &params)?;
    let session = result.session;
    if !args.json {
        let name = session.name.as_deref().unwrap_or(&session.session_id);
        ui.say(&format!("following {name} ({}) in {}; Ctrl-C ends", session.agent, session.cwd));
    }
    follow(connection, args, ui)
}

fn follow(connection: Connection, args: &cli::Attach, ui: &mut Ui) -> Result {
    let mut live = Live::new(connection)?;
    let mut screen = Screen::whole(ui, args.thoughts);
    loop {
        let line = match live.next(ui)? {
            Event::Line(line) => line,
            Event::Interrupt => return Ok(()),
            Event::Key(_) => continue,
            Event::Closed => return Err(gone()),
        };
        let Ok(message) = parse(&line) else { continue };
        match message {
            Message::Notification { method: name, params } => {
                let params = params.map_or("{}", |params| params.get());
                if args.json {
                    ui.print(&String::from_utf8_lossy(&line))?;
                    ui.print("\n")?;
                } else {
                    screen.show(ui, &name, params)?;
                }
                if name == method::SESSION_REMOVED {
                    ui.say("the session was deleted");
                    return Ok(());
                }
            }
            // An observer is not asked; whatever this is, it gets an answer.
            Message::Request { id, method, .. } => live.refuse(&id, &method)?,
            Message::Response { .. } => {}
        }
    }
}
