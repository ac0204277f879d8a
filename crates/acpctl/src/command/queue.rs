//! `acpctl queue`: prompts that wait for the running turn.

use std::io::{IsTerminal as _, read_to_string, stdin};

use acpd_api::{
    QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams, QueueStep, QueuedPrompt,
    SessionInfo, Untrusted, method,
};
use acpd_client::Connection;
use clap::{Args, Subcommand};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::args::{Json, words};
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::queued_prompt;
use crate::lookup::{Care, Which, find, or_last};
use crate::text::{BOLD, Table, Text, shell_word, text};
use crate::ui::Ui;
use crate::user_programs::Edited;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = examples!(
    "acpctl queue main" => "Show queued prompts with their numbers",
))]
#[command(mut_arg("session", or_last))]
pub(super) struct Queue {
    #[command(subcommand)]
    command: Option<QueueCommand>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Change the text of a queued prompt. Its files and images stay.
    #[command(after_long_help = examples!(
        "acpctl queue edit main 1" => "Edit the next prompt in your editor",
        "acpctl queue edit main 2 'only the parser'" => "Replace the text of the second prompt",
    ))]
    Edit {
        #[command(flatten)]
        which: Which,
        /// Number in `acpctl queue SESSION`: 1 is the next.
        #[arg(value_name = "N")]
        number: u32,
        /// The new text [default: stdin, or on a terminal $VISUAL or $EDITOR].
        #[arg(value_name = "PROMPT")]
        prompt: Vec<String>,
    },
    /// Move a queued prompt up, down or to the front.
    #[command(after_long_help = examples!(
        "acpctl queue move main 3 first" => "Send the third prompt next",
    ))]
    Move {
        #[command(flatten)]
        which: Which,
        /// Number in `acpctl queue SESSION`: 1 is the next.
        #[arg(value_name = "N")]
        number: u32,
        /// The new place.
        #[arg(value_name = "WHERE", value_parser = words::<QueueStep>(STEPS))]
        to: QueueStep,
    },
    /// Remove queued prompts. Their clients are notified.
    #[command(after_long_help = examples!(
        "acpctl queue rm main 2 3" => "Remove two prompts",
    ))]
    Rm {
        #[command(flatten)]
        which: Which,
        /// Numbers in `acpctl queue SESSION`.
        #[arg(required = true, value_name = "N")]
        numbers: Vec<u32>,
    },
}

const STEPS: [(&str, &str); 3] =
    [("first", "Before all others"), ("up", "One place up"), ("down", "One place down")];

/// Name for notices to other clients.
const BY: &str = "acpctl queue";

pub(super) fn queue(args: Queue, ui: &mut Ui) -> Result {
    match args.command {
        Some(QueueCommand::Rm { which, numbers }) => remove(&which, &numbers, ui),
        Some(QueueCommand::Edit { which, number, prompt }) => edit(&which, number, &prompt, ui),
        Some(QueueCommand::Move { which, number, to }) => put(&which, number, to, ui),
        None => show(&args.which, args.json.json, ui),
    }
}

fn show(which: &Which, json: bool, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let session = find(&mut connection, which, Care::Guess, ui)?;
    let info: QueueInfo = connection.call(method::SESSION_QUEUE, &session.exactly())?;
    let nothing = || text!("{} has no queued prompts", session.handle());
    let nothing = info.prompts.is_empty().then(nothing);
    ui.show_list(json, &info, nothing, table(&info, ui))
}

fn table(info: &QueueInfo, ui: &Ui) -> Text {
    let now = human::now();
    let row = |prompt: &QueuedPrompt| {
        let place = Text::styled(BOLD, text!("{}", prompt.place));
        [place, human::ago(prompt.at, now), queued_prompt(prompt)]
    };
    Table::new(["N", "SINCE", "PROMPT"], info.prompts.iter().map(row)).render(ui.out_width())
}

/// The user names prompts by place; tickets identify the prompts that had these places.
struct Waiting {
    session: SessionInfo,
    info: QueueInfo,
}

impl Waiting {
    fn of(which: &Which, connection: &mut Connection, ui: &mut Ui) -> Result<Waiting> {
        let session = find(connection, which, Care::Exact, ui)?;
        let info = connection.call(method::SESSION_QUEUE, &session.exactly())?;
        Ok(Waiting { session, info })
    }

    fn prompt(&self, number: u32) -> Result<&QueuedPrompt> {
        let prompt = self.info.prompts.iter().find(|prompt| prompt.place == number);
        prompt.ok_or_else(|| {
            let name = self.session.handle();
            CommandError::usage(text!("{} has no queued prompt {}", name, number))
                .hint(text!("`acpctl queue {}` lists queued prompts", shell_word(name)))
        })
    }
}

fn remove(which: &Which, numbers: &[u32], ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let queue = Waiting::of(which, &mut connection, ui)?;
    // Look up all prompts first: removing one renumbers the others.
    let prompts: Vec<_> = numbers.iter().map(|at| queue.prompt(*at)).collect::<Result<_>>()?;
    for prompt in prompts {
        let (session, by) = (queue.session.exactly(), Some(BY.to_owned()));
        let params = QueueRemoveParams { session, ticket: prompt.ticket, by };
        let _: QueueInfo = connection.call(method::SESSION_QUEUE_REMOVE, &params)?;
        ui.say(text!("removed prompt {}: {}", prompt.place, queued_prompt(prompt)));
    }
    Ok(())
}

fn put(which: &Which, number: u32, to: QueueStep, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let queue = Waiting::of(which, &mut connection, ui)?;
    let ticket = queue.prompt(number)?.ticket;
    let (session, by) = (queue.session.exactly(), Some(BY.to_owned()));
    let params = QueueMoveParams { session, ticket, to, by };
    let info: QueueInfo = connection.call(method::SESSION_QUEUE_MOVE, &params)?;
    Ok(ui.print(table(&info, ui))?)
}

/// Replaces the text of a prompt; its files and images stay.
fn edit(which: &Which, number: u32, words: &[String], ui: &mut Ui) -> Result {
    // Not kept open: the user may take long.
    let queue = Waiting::of(which, &mut ui.door().connect()?, ui)?;
    let (session, before) = (&queue.session, queue.prompt(number)?);
    let (mut edited, (old, kept)) = (None, before.parts());
    let new = match words {
        [] if stdin().is_terminal() => &edited.insert(Edited::of(&old)?).text,
        [] => &read_to_string(stdin())?,
        words => &words.join(" "),
    };
    if new.trim().is_empty() {
        return Err(CommandError::usage("no prompt given").hint(text!(
            "to remove the prompt: `acpctl queue rm {} {}`",
            shell_word(session.handle()),
            number
        )));
    }
    if new.trim_end() == old.trim_end() {
        return ui.done(text!("prompt {} is unchanged", number));
    }
    let text = [json!({"type": "text", "text": new.trim_end()})].into_iter();
    let prompt: Vec<Value> = text.chain(kept).collect();
    let params = QueueEditParams {
        session: session.exactly(),
        ticket: before.ticket,
        prompt: to_raw_value(&prompt).map_err(std::io::Error::from)?,
        by: Some(BY.to_owned()),
    };
    let changed = ui.door().connect().and_then(|mut connection| {
        Ok(connection.call::<_, QueueInfo>(method::SESSION_QUEUE_EDIT, &params)?)
    });
    match (changed, edited) {
        (Ok(_), _) => ui.say(text!("changed prompt {}", number)),
        (Err(error), None) => return Err(error),
        (Err(error), Some(edited)) => {
            let path = Untrusted::from(edited.keep()?.to_string_lossy().into_owned());
            return Err(error.hint(text!("your text is in {}", path)));
        }
    }
    Ok(())
}
