//! `acpctl run --steer`: sends a message to the running turn.

use acp_wire::acp::{InitializeResult, SteeringOutcome, steering_params};
use acp_wire::str_at;
use acpd_api::{ExitCode, Role, SessionInfo, escape};
use serde_json::value::RawValue;

use super::target::blocks;
use super::{Run, Said};
use crate::dirs::current_dir;
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::lookup::{Care, Wanted, all, to_continue};
use crate::text::{shell_word, text};
use crate::ui::Ui;

/// Sends a message to the running turn, whose client shows the effect.
pub(super) fn steer(args: &Run, ui: &mut Ui) -> Result<ExitCode> {
    let cwd = ui.place_of(&args.cwd.clone().map_or_else(current_dir, Ok)?)?;
    let (session, words) = match (args.session.as_ref().or(args.resume.as_ref()), args.goes_on) {
        (Some(session), _) => (Some(session), &args.prompt[..]),
        (None, true) => (None, &args.prompt[..]),
        (None, false) => match args.prompt.split_first() {
            Some((session, words)) => (Some(session), words),
            None => {
                return Err(CommandError::usage("`--steer` needs a session")
                    .hint("name it before the text: `acpctl run --steer SESSION TEXT`"));
            }
        },
    };
    let said = Said::read(args, words, ui)?;
    let (mut connection, agent) = (ui.door().connect_lasting()?, args.agent.as_deref());
    let found = match session {
        Some(session) => {
            let wanted = Wanted::new(session, agent, cwd);
            wanted.choose(all(&mut connection)?, Care::Guess, |note| ui.note(note))?
        }
        None => to_continue(&cwd, agent, &mut connection)?,
    };
    let mut live = Live::new(connection)?;
    let hello = live.bind(&found.agent, Role::Controller, [], ui)?;
    let can = InitializeResult::from_raw(&hello)?.capabilities;
    let prompt = blocks(&said, found.agent.raw(), can)?;
    let params = steering_params(found.session_id.raw(), &prompt);
    let result: Box<RawValue> = live.call(ui, "_session/steering", &params)?;
    if args.turn.json {
        ui.json_line(&result)?;
    }
    report_outcome(&found, &result, ui)
}

fn report_outcome(session: &SessionInfo, result: &RawValue, ui: &mut Ui) -> Result<ExitCode> {
    let name = session.handle();
    let error = match SteeringOutcome::from_raw(result) {
        Some(SteeringOutcome::Injected) => {
            ui.say(text!("{} continues with your message", name));
            return Ok(ExitCode::Ok);
        }
        Some(SteeringOutcome::StartedNewTurn) => {
            ui.say(text!("{} started a new turn with your message", name));
            return Ok(ExitCode::Ok);
        }
        Some(SteeringOutcome::PromptRequired) => text!("no turn is running in session `{}`", name),
        _ => {
            let reason = str_at(result.get().as_bytes(), &["reason"]);
            let reason = reason.map(|reason| text!(": {}", escape::one_line(&reason)));
            text!("{} did not accept the message{}", session.agent, reason)
        }
    };
    let hint = text!("send it as a prompt: `acpctl run -s {} …`", shell_word(name));
    Err(CommandError::new(ExitCode::Error, error).hint(hint))
}
