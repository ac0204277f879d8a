//! `acpctl attach`: follow a session.

use acp_wire::{Message, parse};
use acpd_api::{
    AttachParams, AttachResult, ClientMeta, Role, SessionInfo, SessionRef, StateChanged, TurnState,
    method,
};
use serde_json::value::RawValue;

use super::{Door, initialize_params, which};
use crate::cli;
use crate::error::{Result, gone};
use crate::live::{Event, Live};
use crate::paint::{YELLOW, one_line};
use crate::screen::Screen;
use crate::ui::Ui;

/// Follows until Ctrl-C, or until the session is deleted.
pub(super) fn attach(args: &cli::Attach, door: Door, ui: &mut Ui) -> Result {
    let mut live = Live::new(door.lasting_link()?)?;
    // Bound to the session's own agent, so that no other one is asked what it can do.
    let found: SessionInfo = live.call(ui, method::SESSION_SHOW, &which(&args.which))?;
    let agent = Some(found.agent);
    let meta = ClientMeta {
        agent: agent.clone(),
        notices: true,
        seq: true,
        role: Some(Role::Observer),
        ..ClientMeta::default()
    };
    let _: Box<RawValue> = live.call(ui, "initialize", &initialize_params(&meta))?;
    let after = if args.tail { None } else { Some(0) };
    let session = SessionRef { session: found.session_id, agent, ..SessionRef::default() };
    let params = AttachParams { session, after, role: Role::Observer };
    let result: AttachResult = live.call(ui, method::SESSION_ATTACH, &params)?;
    let session = result.session;
    let handle = session.name.as_deref().unwrap_or(&session.session_id);
    if !args.json {
        ui.say(&format!("following {handle} ({}) in {}; Ctrl-C ends", session.agent, session.cwd));
    }
    if session.turn.state == TurnState::NeedsAction && !args.json {
        needs_answer(handle, ui);
    }
    follow(live, args, handle, ui)
}

/// An observer is not asked, but should know why nothing comes.
fn needs_answer(handle: &str, ui: &mut Ui) {
    let line = format!(
        "the agent waits for permission or an answer: see `acpctl pending`; or go on with \
         `acpctl run -s {handle} PROMPT`, which asks first"
    );
    ui.say(&ui.err_paint().apply(YELLOW, &one_line(&line)));
}

fn follow(mut live: Live, args: &cli::Attach, handle: &str, ui: &mut Ui) -> Result {
    let mut screen = Screen::whole(ui, args.thoughts);
    loop {
        let line = match live.next(ui)? {
            Event::Line(line) => line,
            Event::Interrupt => return Ok(()),
            Event::Key(_) => continue,
            Event::Closed => return Err(gone()),
            Event::Failed(error) => return Err(error.into()),
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
                    let changed = || serde_json::from_str::<StateChanged>(params);
                    if name == method::SESSION_STATE
                        && changed().is_ok_and(|now| now.turn == TurnState::NeedsAction)
                    {
                        needs_answer(handle, ui);
                    }
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
