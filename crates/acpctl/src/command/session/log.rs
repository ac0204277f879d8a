//! `acpctl session log`: the conversation or its end.

use acp_wire::{Message, parse};
use acpd_api::{
    Empty, InteractionList, LogEntry, LogParams, LogResult, SessionInfo, TurnStarted, Untrusted,
    method,
};
use acpd_client::Connection;
use acpd_view::Settings;
use clap::Args;

use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::question::waits;
use crate::lookup::{Care, Which, find, or_last};
use crate::screen::Screen;
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

#[derive(Debug, Clone, Copy)]
enum Part {
    Last(u32),
    Since(u64),
}

impl Part {
    /// Returns whether to show the turn with this `count` from the end.
    fn has(self, count: u32, began: u64) -> bool {
        match self {
            Part::Last(number) => count <= number,
            Part::Since(time) => began >= time,
        }
    }
}

pub(super) fn log(args: &Log, door: Door, ui: &mut Ui) -> Result {
    let mut connection = door.connect()?;
    let session = find(&mut connection, &args.which, Care::Guess, ui)?;
    let part = match (args.last, args.turns, args.since) {
        (true, ..) => Some(Part::Last(1)),
        (_, Some(turns), _) => Some(Part::Last(turns)),
        (.., Some(since)) => Some(Part::Since(since)),
        _ => None,
    };
    let first = match part {
        Some(part) => first_of(part, &session, &mut connection)?,
        None => Some(0),
    };
    let Some(after) = first else {
        ui.say("no turn started in that time");
        return Ok(());
    };
    if !args.json {
        ui.page();
    }
    let mut screen = if args.answer { Screen::only_answer() } else { Screen::whole(args.thoughts) };
    screen.transcript.open(&session.session_id, &session.cwd, None, Settings::default());
    let mut in_turn = false;
    connection.read_log(session.exactly(), after, |page| {
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
    if in_turn { print_questions(&mut connection, &session.session_id, ui) } else { Ok(()) }
}

/// Returns the entry before the part; none if it has no turns. Reads from the end, because a
/// journal may be long.
fn first_of(part: Part, session: &SessionInfo, connection: &mut Connection) -> Result<Option<u64>> {
    let (mut upto, mut window) = (session.seq, WINDOW);
    let (mut first, mut count) = (None, 0);
    while upto > 0 {
        let after = upto.saturating_sub(window);
        for (seq, began) in begun(after, upto, session, connection)?.into_iter().rev() {
            count += 1;
            if !part.has(count, began) {
                return Ok(first);
            }
            first = Some(seq - 1);
        }
        (upto, window) = (after, window * 4);
    }
    // Lines before the first turn belong to a selection of all turns.
    Ok(match part {
        Part::Last(_) => Some(0),
        Part::Since(_) => first,
    })
}

/// Returns the line number and the time of each turn that began in a part of the journal.
fn begun(
    mut after: u64,
    upto: u64,
    session: &SessionInfo,
    connection: &mut Connection,
) -> Result<Vec<(u64, u64)>> {
    let mut turns = Vec::new();
    while after < upto {
        let limit = u32::try_from(upto - after).ok();
        let params = LogParams { session: session.exactly(), after, limit };
        let page: LogResult = connection.call(method::SESSION_LOG, &params)?;
        let here = page.entries.iter().take_while(|entry| entry.seq <= upto);
        turns.extend(here.filter_map(|entry| turn_begun(entry, &page.session_id)));
        match page.next {
            Some(next) if next > after => after = next,
            _ => break,
        }
    }
    Ok(turns)
}

fn turn_begun(entry: &LogEntry, session: &Untrusted) -> Option<(u64, u64)> {
    let Message::Notification { method, params: Some(params) } =
        parse(entry.line.get().as_bytes()).ok()?
    else {
        return None;
    };
    if method != method::TURN_STARTED {
        return None;
    }
    let started: TurnStarted = serde_json::from_str(params.get()).ok()?;
    (started.session_id == *session).then_some((entry.seq, started.at))
}

fn print_questions(connection: &mut Connection, session: &Untrusted, ui: &mut Ui) -> Result {
    let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
    for open in list.interactions {
        if open.session_id.as_ref() == Some(session) {
            ui.warn(waits(&open));
        }
    }
    Ok(())
}
