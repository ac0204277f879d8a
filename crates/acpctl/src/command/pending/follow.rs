//! `acpctl pending --follow`: new questions, and how they are closed.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_wire::{Message, parse};
use acpd_api::{
    InteractionInfo, QuestionAnswered, SessionInfo, SessionRef, Untrusted, Watched, method,
};
use acpd_client::CallError;
use acpd_view::person;
use serde::Serialize;

use crate::daemon::info;
use crate::door::Door;
use crate::error::Result;
use crate::info::question::{described, given};
use crate::rows::{RowEvent, RowWatch};
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

/// Arbitrary, because nothing happens without an event.
const LONG: Duration = Duration::from_hours(1);

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Opened {
        interaction: &'a InteractionInfo,
    },
    Closed {
        id: &'a Untrusted,
        /// None if the question was withdrawn.
        #[serde(skip_serializing_if = "Option::is_none")]
        answered: Option<&'a QuestionAnswered>,
    },
}

pub(super) fn follow(json: bool, ui: &mut Ui) -> Result {
    // Starts the daemon if allowed.
    info(&mut ui.door().connect()?)?;
    let mut rows = RowWatch::begin()?;
    let mut all = Watched::default();
    // Printed questions, with the last line of the session's journal at that time.
    let mut printed: BTreeMap<Untrusted, (InteractionInfo, u64)> = BTreeMap::new();
    loop {
        match rows.next(LONG)? {
            Some(RowEvent::All(new)) => all = new,
            Some(RowEvent::Changed(changed)) => all.apply(changed),
            Some(RowEvent::Stopped) => {
                ui.say("acpd is not running. Start it: `acpctl daemon start`");
                continue;
            }
            Some(RowEvent::Away) | None => continue,
        }
        let is_open = |id: &Untrusted| all.interactions.iter().any(|open| open.id == *id);
        let gone: Vec<_> = printed.extract_if(.., |id, _| !is_open(id)).collect();
        for (id, (open, seq)) in gone {
            let answered = answer_of(&open, seq);
            if json {
                ui.json_line(&Event::Closed { id: &id, answered: answered.as_ref() })?;
                continue;
            }
            let end = match &answered {
                Some(it) => text!("answered by {}: {}", person(&it.by), given(it)),
                None => "withdrawn".into(),
            };
            ui.print(text!("{}  {}\n", id, Text::styled(Role::Dim, end)))?;
        }
        for open in &all.interactions {
            if printed.contains_key(&open.id) {
                continue;
            }
            let asks = |session: &&SessionInfo| {
                session.agent == open.agent && Some(&session.session_id) == open.session_id.as_ref()
            };
            let seq = all.sessions.iter().find(asks).map_or(0, |session| session.seq);
            printed.insert(open.id.clone(), (open.clone(), seq));
            if json {
                ui.json_line(&Event::Opened { interaction: open })?;
            } else {
                let id = Text::styled(BOLD, &open.id);
                ui.print(text!("{}  {}\n", id, described(open)))?;
            }
        }
        ui.flush()?;
    }
}

/// Finds the answer to a question in its session's journal, after a line; none if it cannot be
/// found.
fn answer_of(open: &InteractionInfo, after: u64) -> Option<QuestionAnswered> {
    let session = SessionRef::to(open.agent.raw(), open.session_id.as_ref()?.raw());
    let mut daemon = Door { spawn: false }.connect().ok()?;
    let mut found = None;
    let read = daemon.read_log(session, after, |page| {
        for entry in page.entries {
            let line = parse(entry.line.get().as_bytes());
            let Ok(Message::Notification { method, params: Some(params) }) = line else { continue };
            if method != method::ANSWERED {
                continue;
            }
            let answered: Option<QuestionAnswered> = serde_json::from_str(params.get()).ok();
            found = found.take().or_else(|| answered.filter(|answered| answered.id == open.id));
        }
        Ok::<(), CallError>(())
    });
    read.ok().and(found)
}
