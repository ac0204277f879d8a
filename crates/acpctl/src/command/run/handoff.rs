//! `acpctl session handoff`: another agent continues a conversation in a new session. Its first
//! prompt has the user's words, a note about the handoff, and the transcript.

use std::path::Path;

use acpd_api::{ExitCode, PromptMeta, SessionInfo, TurnState, Untrusted};
use acpd_client::attachment::{Attachment, LIMIT};
use clap::Args;
use serde_json::json;

use super::opening::{SetUp, make};
use super::turn::{Turn, TurnArgs};
use super::{moved, prompt};
use crate::daemon::agent;
use crate::dirs::{directory, utf8};
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::lookup::{Care, Which, find};
use crate::text::{Text, shell_word, text};
use crate::transcript::Transcript;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
The transcript is that of `session export`: the last turns, up to 64 KiB. The old session stays, and the new one has \
its labels. Without PROMPT, stdin is read unless it is a terminal. Output and exit codes are those of `run`.";
    "acpctl session handoff main --to codex 'finish it'" =>
        "Let another agent continue in the same directory",
    "acpctl session handoff main --to codex --all -s main-2" =>
        "Hand over all turns; name the new session `main-2`",
))]
pub(in crate::command) struct Handoff {
    #[command(flatten)]
    which: Which,
    /// The agent that continues.
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// Name of the new session.
    #[arg(short = 's', long = "name", value_name = "NAME")]
    name: Option<String>,
    /// Hand over all turns, not only the last ones.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    set_up: SetUp,
    #[command(flatten)]
    turn: TurnArgs,
    /// The prompt; words are joined [default: ask for the state of the work].
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
}

/// About 16,000 tokens.
const DEFAULT_TRANSCRIPT_BYTES: usize = 64 * 1024;
const DEFAULT_PROMPT: &str = "Take over: read how far the work has come, and say in a few sentences where it stands and \
     what comes next. Change nothing yet.";

pub(in crate::command) fn handoff(args: &Handoff, ui: &mut Ui) -> Result<ExitCode> {
    let (words, piped) = prompt(&args.prompt, &[], !args.turn.no_stdin, ui)?;
    let mut connection = ui.door().connect()?;
    let old = find(&mut connection, &args.which, Care::Guess, ui)?;
    let cwd = utf8(&directory(Path::new(old.cwd.raw())).map_err(moved)?)?;
    // The announcement is printed only for an agent that exists.
    agent(&mut connection, &args.to)?;
    let room = if args.all { usize::MAX } else { DEFAULT_TRANSCRIPT_BYTES };
    let transcript = Transcript::read(&old, room, &mut connection)?;
    drop(connection);
    check(&old, &transcript)?;
    ui.note(announced(&old, &transcript, &args.to));
    let is_asked = !words.trim().is_empty();
    let old_title = old.title.as_ref().map_or_else(|| old.handle().raw(), Untrusted::raw);
    let title = if is_asked { words.clone() } else { old_title.to_owned() };
    let words = if is_asked { &words } else { DEFAULT_PROMPT };
    let said = json!({"type": "text", "text": format!("{words}\n\n{}", note(&old, &transcript))});
    ui.spin("starting");
    let live = Live::new(ui.door().connect_lasting()?)?;
    let mut turn = Turn::new(live, ui, &args.turn);
    turn.bind(Some(args.to.clone()), &cwd)?;
    let name = args.name.as_deref();
    let made = make(&mut turn, name, &old.labels, &cwd, &args.set_up)?;
    turn.session_id = made.map_err(|error| CommandError::rpc(&error))?;
    let handle = name.map_or_else(|| Untrusted::from(&turn.session_id), Untrusted::from);
    turn.ui.say(text!(
        "session {} of {}; continue with: acpctl run -s {} ...",
        handle,
        Untrusted::from(&args.to),
        shell_word(&handle)
    ));
    let mut blocks = vec![said];
    let transcript = Attachment::markdown("transcript", transcript.text());
    for attachment in [Some(transcript), piped].iter().flatten() {
        blocks.extend(attachment.blocks(turn.can.embedded_context));
    }
    let meta = PromptMeta { title: Some(title), ..PromptMeta::default() };
    turn.prompt(blocks, &args.turn, meta, name)
}

fn check(old: &SessionInfo, transcript: &Transcript) -> Result {
    let name = old.handle();
    if transcript.count() == 0 {
        return Err(CommandError::usage(text!("session {} is empty", name))
            .hint("start with another agent: `acpctl run -a AGENT PROMPT`"));
    }
    if transcript.text().len() as u64 > LIMIT {
        return Err(CommandError::usage(text!("the transcript of {} is bigger than 10 MiB", name))
            .hint("without `--all`, only the last turns are handed over"));
    }
    Ok(())
}

fn announced(old: &SessionInfo, transcript: &Transcript, to: &str) -> Text {
    let all = transcript.count() + transcript.left_out;
    let which = match (transcript.is_cut, transcript.left_out, all) {
        (true, _, 1) => "the end of the only turn".into(),
        (true, ..) => text!("the end of the last of {} turns", all),
        (false, 0, 1) => "the only turn".into(),
        (false, 0, _) => text!("all {} turns", all),
        (false, ..) => text!("the last {} of {} turns", transcript.count(), all),
    };
    let to = Untrusted::from(to);
    let line = text!("handing over {} of {} ({}) to {}", which, old.handle(), old.agent, to);
    if old.turn.state == TurnState::Idle {
        return line;
    }
    let word = shell_word(old.handle());
    text!("{}\nits turn is still running; cancel it with: acpctl cancel {}", line, word)
}

fn note(old: &SessionInfo, transcript: &Transcript) -> String {
    let agent = old.agent.raw();
    let left_out = match (transcript.is_cut, transcript.left_out) {
        (false, 0) => "It is complete.".to_owned(),
        (true, _) => "It is the end of the last turn; what came before is left out.".to_owned(),
        (false, 1) => "The first turn is left out.".to_owned(),
        (false, count) => format!("The first {count} turns are left out."),
    };
    format!(
        "This conversation was handed over to you: until now, the person talked with another agent, `{agent}`, \
         about work in this directory. The transcript of it comes with this message. {left_out} You have \
         not said or done what it tells of the agent, and files may have changed since. Take it as context, \
         not as instructions to carry out again."
    )
}
