//! `acpctl session log`: the conversation or its end.

use acp_wire::{Message, parse};
use acpd_api::{Empty, InteractionInfo, InteractionList, LogParams, SessionInfo, method};
use acpd_client::Connection;
use acpd_view::Settings;
use clap::Args;

use crate::error::{CommandError, Result};
use crate::human;
use crate::info::question::waits;
use crate::lookup::{Care, Which, find, or_last};
use crate::screen::Screen;
use crate::transcript::read;
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
On a terminal, a pager shows it: $ACPCTL_PAGER, else $PAGER, else less. `ACPCTL_PAGER=cat` disables it.";
    "acpctl session log main" => "Read the whole conversation",
    "acpctl session log main --last --answer" => "Print only the last answer",
    "acpctl session log main --since 2h" => "Read the turns of the last two hours",
))]
#[command(mut_arg("session", or_last))]
pub(in crate::command) struct Log {
    #[command(flatten)]
    which: Which,
    /// Only the last turn.
    #[arg(long, conflicts_with_all = ["turns", "since"])]
    last: bool,
    /// Only the last N turns.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "since",
        value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// Only turns since then: 2h, 09:30, 2026-11-22, or '2026-11-22 09:30'.
    #[arg(long, value_name = "TIME", value_parser = human::read_time)]
    since: Option<u64>,
    /// Only the agent's answers, as `run` prints them to stdout.
    #[arg(long, conflicts_with_all = ["thoughts", "json"])]
    answer: bool,
    /// Show the agent's thoughts.
    #[arg(long)]
    thoughts: bool,
    /// Print each entry as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Entries to read first when searching backwards.
const WINDOW: u64 = 512;

pub(super) fn log(args: &Log, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let session = find(&mut connection, &args.which, Care::Guess, ui)?;
    let first = match (if args.last { Some(1) } else { args.turns }, args.since) {
        (None, None) => Some(0),
        (last, since) => first_of(last, since, &session, &mut connection)?,
    };
    let Some(after) = first else {
        return ui.done("no turn started in that time");
    };
    if !args.json {
        ui.page();
    }
    let mut screen = if args.answer { Screen::only_answer() } else { Screen::whole(args.thoughts) };
    screen.transcript.open(&session.session_id, &session.cwd, None, Settings::default());
    let mut in_turn = false;
    let asked = LogParams { originals: !args.json, ..LogParams::after(session.exactly(), after) };
    connection.read_log(asked, |page| {
        for entry in &page.entries {
            if args.json {
                ui.json_line(entry)?;
            } else if let Ok(Message::Notification { method, params }) =
                parse(entry.line.get().as_bytes())
            {
                in_turn =
                    method == method::TURN_STARTED || (in_turn && method != method::TURN_ENDED);
                screen.show(ui, &method, params.map_or("{}", |params| params.get()))?;
            }
        }
        Ok::<(), CommandError>(())
    })?;
    screen.finish(ui)?;
    // Questions are not in the journal: they may be answered at any time.
    if in_turn {
        let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
        let is_its = |open: &&InteractionInfo| open.is_of(&session.agent, &session.session_id);
        for open in list.interactions.iter().filter(is_its) {
            ui.warn(waits(open));
        }
    }
    Ok(())
}

/// Returns the entry before the last turns, or the turns since a time; none if there are no such
/// turns. Reads more and more of the end, because a journal may be long.
fn first_of(
    last: Option<u32>,
    since: Option<u64>,
    session: &SessionInfo,
    connection: &mut Connection,
) -> Result<Option<u64>> {
    let is_wanted = |count: u32, began: u64| {
        last.is_none_or(|last| count <= last) && since.is_none_or(|since| began >= since)
    };
    let mut window = WINDOW;
    loop {
        let after = session.seq.saturating_sub(window);
        let mut turns = Vec::new();
        read(session, after, connection, |turn| {
            turns.extend(turn.started);
            Ok(())
        })?;
        let wanted = (1..).zip(turns.iter().rev());
        let wanted = wanted.take_while(|(count, turn)| is_wanted(*count, turn.at)).count();
        if wanted < turns.len() || after == 0 && since.is_some() {
            return Ok(wanted.checked_sub(1).map(|last| turns[turns.len() - 1 - last].seq - 1));
        }
        // Lines before the first turn belong to a selection of all turns.
        if after == 0 {
            return Ok(Some(0));
        }
        window *= 4;
    }
}
