//! `acpctl chat`: a conversation on the full screen, or line by line.

mod plain;

use acpd_api::{ExitCode, SessionInfo};
use acpd_client::Connection;
use acpd_tui::Opens;
use clap::Args;

use crate::dirs::{current_dir, utf8};
use crate::error::Result;
use crate::lookup::{Care, Wanted, all, last_used};
use crate::ui::Ui;
use crate::{default_agent, full_screen};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl chat" => "Continue the last used session of this directory, or start one",
    "acpctl chat --new -a claude" => "Start a session with this agent",
    "acpctl chat main --plain" => "Read and write line by line, for a screen reader",
))]
pub(super) struct Chat {
    /// Name, id, unique prefix of either, words of the title, or `-` for the last used session [default: the
    /// last used session of this directory, else a new one].
    session: Option<String>,
    /// Look only among sessions of this agent; the agent of a new session.
    #[arg(short, long)]
    agent: Option<String>,
    /// Start a new session.
    #[arg(long, conflicts_with = "session")]
    new: bool,
    /// Print line by line instead of on a full screen: for screen readers and simple terminals.
    #[arg(long)]
    plain: bool,
}

pub(super) fn chat(args: &Chat, ui: &mut Ui) -> Result<ExitCode> {
    let instead = "without one: `acpctl chat --plain`, `acpctl run`, `acpctl attach`";
    let screen = (!args.plain).then(|| full_screen::start(ui, instead)).transpose()?;
    let mut connection = ui.door().connect()?;
    let found = find(args, &mut connection, ui)?;
    let agent = match &found {
        Some(session) => session.agent.raw().to_owned(),
        None => agent(args, &mut connection, ui)?,
    };
    drop(connection);
    let Some(mut start) = screen else { return plain::plain(found, agent, ui) };
    start.opens = match found {
        Some(SessionInfo { session_id, seq, .. }) => {
            Opens::Session { agent, session_id: session_id.into_raw(), seq }
        }
        None => Opens::New { agent },
    };
    full_screen::run(start, ui)?;
    Ok(ExitCode::Ok)
}

/// Returns none to begin a session.
fn find(args: &Chat, connection: &mut Connection, ui: &mut Ui) -> Result<Option<SessionInfo>> {
    if args.new {
        return Ok(None);
    }
    let (agent, cwd) = (args.agent.as_deref(), utf8(&current_dir()?)?);
    let Some(text) = &args.session else {
        return last_used(&cwd, agent, connection);
    };
    let choice = Wanted::new(text, agent, cwd).choose(all(connection)?, Care::Guess)?;
    Ok(Some(choice.print_note(ui)))
}

/// Returns the agent of a new session: the named one, the user's choice, or the default.
fn agent(args: &Chat, connection: &mut Connection, ui: &mut Ui) -> Result<String> {
    if let Some(agent) = &args.agent {
        return Ok(agent.clone());
    }
    let daemon = default_agent::daemon_for(&utf8(&current_dir()?)?, connection)?;
    if let Some(chosen) = default_agent::ask_if_found(&daemon, connection, ui)? {
        return Ok(chosen);
    }
    if let Some(note) = default_agent::note(&daemon) {
        ui.note(note);
    }
    Ok(daemon.default_agent.into_raw())
}
