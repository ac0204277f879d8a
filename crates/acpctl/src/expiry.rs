//! Names and announcements of sessions over the limits of `[retention]`.

use acpd_api::{GcParams, GcResult, GcSession, Untrusted, method};
use acpd_client::{CallError, Connection};

use crate::human;
use crate::text::{Text, text};
use crate::ui::Ui;

const MAX_NAMED: usize = 8;

/// Prints the sessions that the limits delete next, and the time.
pub(crate) fn announce(connection: &mut Connection, ui: &mut Ui) {
    let look = GcParams { dry_run: true, ..GcParams::default() };
    // Without a limit, or with an older daemon, this fails.
    let found: std::result::Result<GcResult, CallError> = connection.call(method::GC, &look);
    let Ok(found) = found else { return };
    let Some(next) = found.next.filter(|_| !found.sessions.is_empty()) else { return };
    let mut names: Vec<Text> =
        found.sessions.iter().take(MAX_NAMED).map(|one| handle(one).into()).collect();
    let more = found.sessions.len() - names.len();
    if more > 0 {
        names.push(text!("{} more", more));
    }
    ui.say(text!(
        "[retention] deletes {} at {}: {}\n  to keep them, raise the limits and reload before; `acpctl gc --dry-run` \
         lists them",
        amount(&found),
        human::clock(next),
        Text::join(names, ", ")
    ));
}

pub(crate) fn amount(found: &GcResult) -> Text {
    let count = human::counted(found.sessions.len(), "session");
    text!("{} ({})", count, human::bytes(found.bytes))
}

pub(crate) fn handle(session: &GcSession) -> &Untrusted {
    session.name.as_ref().unwrap_or(&session.session_id)
}
