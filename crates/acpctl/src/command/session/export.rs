//! `acpctl session export`: a session as Markdown or JSON, printed while it is read.

use acpd_api::SessionInfo;
use acpd_client::Connection;
use acpd_view::{Block, Content, Kind, Message, Turn};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::lookup::{Care, Which, find, or_last};
use crate::transcript::{Markdown, Part, head, read};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
JSON is one array. Each item has `type` and, except the first, `seq`: its first line in the journal.

  session       the session, as `session show --json` prints it
  user          content: prompt of the user, in content blocks of ACP
  agent         content: answer of the agent
  thought       content: thought of the agent
  tool_call     toolCallId, title, kind, status, locations, content, rawInput, rawOutput, as in ACP
  plan          entries: the last plan, as in ACP; at the end
  turn_started  turn, at
  turn_ended    turn, at, outcome, usage (tokens and cost, if the agent reported them)
  restored      level, at, reason
  notice        severity, text
  skipped       bytes, limit

The last five are notices of acpd without their sessionId. More types may be added.";
    "acpctl session export main > main.md" => "Write a transcript to a file",
    "acpctl session export main --json | jq '.[].type'" => "Process it with another program",
))]
#[command(mut_arg("session", or_last))]
pub(in crate::command) struct Export {
    #[command(flatten)]
    which: Which,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// A format of `session export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A transcript in Markdown.
    Md,
    /// Everything as one array.
    Json,
}

pub(super) fn export(args: &Export, ui: &mut Ui) -> Result {
    let format = if args.json { Format::Json } else { args.format };
    let mut connection = ui.door().connect()?;
    let info = find(&mut connection, &args.which, Care::Guess, ui)?;
    match format {
        Format::Md => {
            let mut markdown = Markdown::new(&info.agent);
            ui.print(head(&info))?;
            read(&info, 0, &mut connection, |turn| relay(markdown.turn(&turn), ui))?;
            relay(markdown.end(), ui)
        }
        Format::Json => as_json(&info, &mut connection, ui),
    }
}

fn as_json(info: &SessionInfo, connection: &mut Connection, ui: &mut Ui) -> Result {
    let mut first = json!(info);
    first["type"] = json!("session");
    ui.print("[\n")?;
    ui.json_item(&first)?;
    // Only the last plan counts.
    let mut plan: Option<Value> = None;
    read(info, 0, connection, |turn| {
        for item in items(&turn) {
            ui.print(",\n")?;
            ui.json_item(&item)?;
        }
        plan = turn.blocks.iter().rev().find_map(plan_item).or(plan.take());
        Ok(())
    })?;
    if let Some(plan) = plan {
        ui.print(",\n")?;
        ui.json_item(&plan)?;
    }
    Ok(ui.print("\n]\n")?)
}

fn relay(parts: impl IntoIterator<Item = Part>, ui: &mut Ui) -> Result {
    for part in parts {
        match part {
            Part::Ours(text) => ui.print(&text)?,
            Part::Theirs(text) => ui.relay(&text)?,
        }
    }
    Ok(())
}

const NOTICES: &str = "_acpd/";

fn items(turn: &Turn) -> impl Iterator<Item = Value> {
    let started = turn.started.map(|started| {
        json!({"type": "turn_started", "seq": started.seq, "turn": started.turn, "at": started.at})
    });
    started.into_iter().chain(turn.blocks.iter().filter_map(item))
}

fn plan_item(block: &Block) -> Option<Value> {
    match &block.kind {
        Kind::Plan(plan) if plan.text.is_none() => {
            Some(json!({"type": "plan", "seq": block.last, "entries": plan.entries}))
        }
        _ => None,
    }
}

/// Returns none for a block that is only for users.
fn item(block: &Block) -> Option<Value> {
    let (kind, mut members) = match (block.source(), &block.kind) {
        (Some(notice), _) => (notice.method.trim_start_matches(NOTICES), notice.params.clone()),
        (None, Kind::Prompt(message)) => ("user", said(message)),
        (None, Kind::Answer(message)) => ("agent", said(message)),
        (None, Kind::Thought(message)) => ("thought", said(message)),
        (None, Kind::Call(call) | Kind::Edit(call) | Kind::Command(call)) => {
            ("tool_call", call.members().clone())
        }
        _ => return None,
    };
    members.insert("type".to_owned(), kind.into());
    members.insert("seq".to_owned(), block.id.seq().into());
    Some(Value::Object(members))
}

fn said(message: &Message) -> Map<String, Value> {
    let content = message.content.iter().map(|part| match part {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Other(block) => block.clone(),
    });
    Map::from_iter([("content".to_owned(), content.collect())])
}
