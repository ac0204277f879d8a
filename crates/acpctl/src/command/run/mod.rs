//! `acpctl run`: prompt an agent and stream its answer.

mod attachment;
mod permission;
mod place;
mod turn;

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use acp_wire::acp::{InitializeResult, NewSessionResult, stop_reason};
use acpd_api::{
    AttachParams, AttachResult, ClientMeta, ExitCode, NAMESPACE, NewSessionMeta, Reason,
    RestoreLevel, Role, SessionInfo, SessionRef, method,
};
use acpd_client::{error_data, initialize_params};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Door, current_dir, directory, text};
use crate::cli;
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::paint::{DIM, one_line};
use crate::ui::Ui;
use attachment::Attachment;
use turn::Turn;

/// Runs one turn.
pub(super) fn run(args: &cli::Run, door: Door, ui: &mut Ui) -> Result<ExitCode> {
    // Everything that can be wrong with the arguments is found before the daemon is bothered.
    let attachments = attachments(args)?;
    let cwd = directory(&args.cwd.clone().map_or_else(current_dir, Ok)?)?;
    let prompt = prompt(&args.prompt)?;
    if prompt.trim().is_empty() && attachments.is_empty() {
        return Err(CommandError::usage("there is nothing to say").hint(
            "give a prompt: `acpctl run 'explain this project'`, or `-` to read it from stdin",
        ));
    }
    ui.spin(Some("starting"));
    let live = Live::new(door.lasting_link()?)?;
    let mut turn = Turn::new(live, ui, args.thoughts, args.json);
    let target = Target::find(&mut turn, args, &cwd)?;
    let blocks = target.blocks(&prompt, &attachments)?;
    let params = json!({"sessionId": target.session_id, "prompt": blocks});
    let outcome = turn.prompt(&target.session_id, &params)?;
    outcome.map_err(|error| CommandError::rpc(&error)).map(|result| end(&mut turn, &result))
}

/// The session to prompt and what its agent can take.
struct Target {
    session_id: String,
    agent: String,
    can_embed: bool,
    can_see: bool,
}

impl Target {
    /// Finds the named session or begins one.
    fn find(turn: &mut Turn<'_>, args: &cli::Run, cwd: &Path) -> Result<Target> {
        let cwd = text(cwd)?;
        let found = match &args.session {
            Some(name) => existing(turn, name, args.agent.as_deref(), &cwd)?,
            None => None,
        };
        let agent = found.as_ref().map(|session| session.agent.clone()).or(args.agent.clone());
        let meta =
            ClientMeta { agent: agent.clone(), notices: true, seq: true, ..ClientMeta::default() };
        let raw: Box<RawValue> = turn.call("initialize", &initialize_params(&meta, "acpctl"))?;
        let known = InitializeResult::from_raw(&raw)
            .map_err(|error| CommandError::new(ExitCode::Error, error.to_string()))?;
        let session_id = match found {
            Some(session) => attach(turn, session.session_id, agent.clone())?,
            None => {
                let id = begin(turn, args.session.as_deref(), &cwd, agent.clone())?;
                if args.session.is_none() && turn.ui.can_ask() {
                    let line = format!("session {id}; go on with: acpctl run -s {id} ...");
                    turn.ui.say(&turn.ui.err_paint().apply(DIM, &one_line(&line)));
                }
                id
            }
        };
        let agent = agent
            .or(known.agent_info.map(|info| info.name))
            .unwrap_or_else(|| "the agent".to_owned());
        let can_embed = known.capabilities.embedded_context;
        Ok(Target { session_id, agent, can_embed, can_see: known.capabilities.image })
    }

    /// The prompt's content blocks.
    fn blocks(&self, prompt: &str, attachments: &[Attachment]) -> Result<Vec<Value>> {
        let mut blocks = Vec::new();
        if !prompt.trim().is_empty() {
            blocks.push(json!({"type": "text", "text": prompt}));
        }
        for attachment in attachments {
            if matches!(attachment, Attachment::Image { .. }) && !self.can_see {
                return Err(CommandError::usage(format!("{} takes no images", self.agent))
                    .hint("choose another agent with `--agent`, or leave out `--image`"));
            }
            blocks.push(attachment.block(self.can_embed));
        }
        Ok(blocks)
    }
}

/// The session of exactly this name in this directory, else the one of exactly this id.
fn existing(
    turn: &mut Turn<'_>,
    name: &str,
    agent: Option<&str>,
    cwd: &str,
) -> Result<Option<SessionInfo>> {
    let wanted = SessionRef {
        session: name.to_owned(),
        agent: agent.map(str::to_owned),
        cwd: Some(cwd.to_owned()),
        exact_name: true,
    };
    if let Some(session) = show(turn, &wanted)? {
        return Ok(Some(session));
    }
    let wanted = SessionRef { cwd: None, exact_name: false, ..wanted };
    Ok(show(turn, &wanted)?.filter(|session| session.session_id == name))
}

fn show(turn: &mut Turn<'_>, wanted: &SessionRef) -> Result<Option<SessionInfo>> {
    match turn.try_call(method::SESSION_SHOW, wanted)? {
        Ok(session) => Ok(Some(session)),
        Err(error) => match error_data(&error).map(|data| data.reason) {
            Some(Reason::SessionNotFound | Reason::SessionAmbiguous) => Ok(None),
            _ => Err(CommandError::rpc(&error)),
        },
    }
}

fn begin(
    turn: &mut Turn<'_>,
    name: Option<&str>,
    cwd: &str,
    agent: Option<String>,
) -> Result<String> {
    let mut params = json!({"cwd": cwd, "mcpServers": []});
    if let Some(name) = name {
        let meta = NewSessionMeta { name: Some(name.to_owned()), reuse: false };
        params["_meta"] = json!({NAMESPACE: meta});
    }
    match turn.try_call::<Box<RawValue>>("session/new", &params)? {
        Ok(result) => {
            let new = NewSessionResult::from_raw(&result)
                .map_err(|error| CommandError::new(ExitCode::Error, error.to_string()))?;
            Ok(new.session_id.into_owned())
        }
        // Somebody else began it since we looked.
        Err(error) => match error_data(&error) {
            Some(data) if data.reason == Reason::NameTaken && data.session_id.is_some() => {
                attach(turn, data.session_id.unwrap_or_default(), agent)
            }
            _ => Err(CommandError::rpc(&error)),
        },
    }
}

/// Takes part in a session from now on.
fn attach(turn: &mut Turn<'_>, session_id: String, agent: Option<String>) -> Result<String> {
    let session = SessionRef { session: session_id, agent, ..SessionRef::default() };
    let params = AttachParams { session, after: None, role: Role::Controller };
    let result: AttachResult = turn.call(method::SESSION_ATTACH, &params)?;
    turn.join(&result.session);
    Ok(result.session.session_id)
}

/// What the end of a turn means for the shell.
fn end(turn: &mut Turn<'_>, result: &RawValue) -> ExitCode {
    let stop = stop_reason(result).unwrap_or_default();
    let note = match &*stop {
        "refusal" => Some("the agent refused"),
        "max_tokens" => Some("stopped: the answer reached the agent's length limit"),
        "max_turn_requests" => Some("stopped: the turn reached the agent's limit of requests"),
        "cancelled" => Some("cancelled"),
        _ => None,
    };
    if let Some(note) = note {
        turn.ui.say(note);
    }
    match &*stop {
        "refusal" => ExitCode::Refused,
        "cancelled" => ExitCode::Cancelled,
        _ if turn.restored == Some(RestoreLevel::Reseeded) => ExitCode::ContextLost,
        _ => ExitCode::Ok,
    }
}

fn attachments(args: &cli::Run) -> Result<Vec<Attachment>> {
    let files = args.files.iter().map(|path| Attachment::file(path));
    let images = args.images.iter().map(|path| Attachment::image(path));
    files.chain(images).collect()
}

/// The words of the prompt, and what stdin holds where it is asked for.
fn prompt(words: &[String]) -> Result<String> {
    let (words, reads_stdin) = match words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        Some(_) => (words, false),
        None => (words, !io::stdin().is_terminal()),
    };
    let mut prompt = words.join(" ");
    if reads_stdin {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| {
            CommandError::new(ExitCode::Error, format!("cannot read stdin: {error}"))
        })?;
        if !prompt.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(String::from_utf8_lossy(&bytes).trim_end());
    }
    Ok(prompt)
}
