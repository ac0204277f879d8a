//! `acpctl cancel`: cancels a session's running turn from any terminal. As in `chat` and on the
//! page, a cancel includes queued prompts; on a terminal, the user is asked.

use acp_wire::parse;
use acpd_api::{CancelParams, CancelResult, ExitCode, Role, SessionInfo, TurnState, method};
use acpd_client::Connection;
use clap::Args;

use crate::confirm::yes;
use crate::error::{CommandError, Result};
use crate::human::counted;
use crate::info::session::queued_prompt;
use crate::live::{Event, Live};
use crate::lookup::{Care, Which, find};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;
use crate::watch::{End, Watch};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl cancel main" => "Cancel the turn and remove queued prompts",
    "acpctl cancel main --turn" => "Cancel only the turn; the next prompt starts",
    "acpctl cancel main --background" => "End the commands that the agent left running",
))]
pub(super) struct Cancel {
    #[command(flatten)]
    which: Which,
    /// Cancel only the running turn; the next queued prompt starts.
    #[arg(long, conflicts_with = "queued")]
    turn: bool,
    /// Also remove queued prompts [default without a terminal; on a terminal, it asks].
    #[arg(long)]
    queued: bool,
    /// End the agent's work in the background instead: commands, tool calls, subagents.
    #[arg(long, conflicts_with_all = ["turn", "queued"])]
    background: bool,
}

fn end_background(found: &SessionInfo, connection: &mut Connection, ui: &mut Ui) -> Result {
    let session = found.exactly();
    let params = CancelParams { session, turn_only: false, background: true, by: None };
    let done: CancelResult = connection.call(method::SESSION_CANCEL, &params)?;
    let (name, agent) = (done.session.handle(), &done.session.agent);
    let (asked, all) = (done.background.unwrap_or_default(), done.session.background.len());
    if asked > 0 {
        ui.say(text!("asked {} to end the work in the background of {}", agent, name));
    }
    if (asked as usize) < all {
        let word = shell_word(agent);
        let text = text!("{} cannot end the rest alone", agent);
        let hint = text!("end it with its process: `acpctl agent restart {}`", word);
        return Err(CommandError::new(ExitCode::Error, text).hint(hint));
    }
    Ok(())
}

/// Waits until the turn is over: then a prompt begins at once.
pub(super) fn cancel(args: &Cancel, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect_lasting()?;
    let found = find(&mut connection, &args.which, Care::Guess, ui)?;
    if args.background {
        return end_background(&found, &mut connection, ui);
    }
    let waiting = if args.turn { 0 } else { found.queued };
    let is_running = found.turn.state != TurnState::Idle;
    if !is_running && waiting == 0 {
        let (name, word) = (found.handle(), shell_word(found.handle()));
        let hint = match found.queued {
            0 => text!("see its last turn: `acpctl session log {} --last`", word),
            _ => text!("remove its queued prompts: `acpctl cancel {}`", word),
        };
        let text = text!("no turn is running in session `{}`", name);
        return Err(CommandError::new(ExitCode::Error, text).hint(hint));
    }
    let is_asked = is_running && waiting > 0 && !args.queued && ui.can_ask();
    let turn_only = args.turn || is_asked && !yes(ui, also(waiting))?;
    let mut live = Live::new(connection)?;
    live.bind(&found.agent, Role::Observer, [], ui)?;
    // Watch first, because the turn may end at once.
    let mut watch = Watch::begin(&found, &mut live, ui)?;
    let params = CancelParams { session: found.exactly(), turn_only, background: false, by: None };
    let done: CancelResult = live.call(ui, method::SESSION_CANCEL, &params)?;
    let name = done.session.handle();
    if done.running {
        ui.spin("cancelling, Ctrl-C exits now");
        let end = wait_for_end(&mut live, &mut watch, ui)?;
        ui.stop_spinning();
        ui.say(match end.word.raw() {
            "cancelled" => text!("cancelled the turn of {}", name),
            "unwedged" => text!(
                "cancelled the turn of {}: {} did not react and was stopped",
                name,
                done.session.agent
            ),
            _ => text!("the turn of {} ended before the cancel ({})", name, end.word),
        });
    }
    if done.taken_back > 0 {
        let removed = counted(done.taken_back, "queued prompt");
        ui.say(text!("removed {} of {}", removed, name));
    }
    for prompt in &done.prompts {
        ui.say(text!("  {}  {}", prompt.place, queued_prompt(prompt)));
    }
    Ok(())
}

fn also(queued: u32) -> Text {
    match queued {
        1 => "also remove the queued prompt? y/n > ".into(),
        queued => text!("also remove the {} queued prompts? y/n > ", queued),
    }
}

fn wait_for_end(live: &mut Live, watch: &mut Watch, ui: &mut Ui) -> Result<End> {
    // Notices before the answer were dropped.
    watch.look(live)?;
    loop {
        if let Some(end) = watch.turn_over() {
            return Ok(end);
        }
        match live.next(ui)? {
            Event::Line(line) => {
                if let Ok(message) = parse(&line) {
                    watch.hear(&message, live)?;
                }
            }
            Event::Interrupt | Event::Detach => {
                return Err(CommandError::new(
                    ExitCode::Cancelled,
                    "stopped waiting; the agent was asked to end the turn",
                ));
            }
            Event::Key(_) | Event::Late | Event::Link(_) => {}
            Event::Ended(error) => return Err(error.into()),
        }
    }
}
