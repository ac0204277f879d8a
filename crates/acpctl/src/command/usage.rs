//! `acpctl usage`: the summed usage of turns.

use acpd_api::{Cost, SessionInfo, Tokens, UsageBy, UsageParams, UsageReport, UsageTotal, method};
use clap::Args;

use crate::args::{Json, words};
use crate::error::Result;
use crate::human;
use crate::lookup::all;
use crate::text::{BOLD, Cut, Table, Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl usage --since 7d --by day" => "Show the usage of each day of the last week",
    "acpctl usage --by session --json" => "Show all sessions as JSON",
))]
pub(super) struct Usage {
    /// Only turns that ended since then: an age (7d, 12h), a day, or a time [default: all].
    #[arg(long, value_name = "TIME", value_parser = human::read_time)]
    since: Option<u64>,
    /// Group turns by this.
    #[arg(long, default_value = "agent", value_parser = words::<UsageBy>(GROUPS.map(|by| (by, ""))))]
    by: UsageBy,
    #[command(flatten)]
    json: Json,
}

const GROUPS: [&str; 4] = ["agent", "session", "workspace", "day"];

pub(super) fn usage(args: &Usage, ui: &mut Ui) -> Result {
    let by = args.by;
    let mut connection = ui.door().connect()?;
    let params = UsageParams { since: args.since.unwrap_or_default(), by };
    let report: UsageReport = connection.call(method::USAGE, &params)?;
    if args.json.json {
        return Ok(ui.json(&report)?);
    }
    if report.totals.is_empty() {
        return ui.done("no turn ended in this time");
    }
    let known = match by {
        UsageBy::Session => all(&mut connection)?.sessions,
        _ => Vec::new(),
    };
    let home = acpd_sys::paths::home().filter(|_| ui.out_width().is_some());
    let label = |total: &UsageTotal| match by {
        UsageBy::Agent => text!("{}", total.agent),
        UsageBy::Session => {
            let is_it = |info: &&SessionInfo| {
                (Some(&info.agent), Some(&info.session_id))
                    == (total.agent.as_ref(), total.session_id.as_ref())
            };
            let found = known.iter().find(is_it);
            found.map_or_else(|| text!("{}", total.session_id), |info| info.handle().into())
        }
        UsageBy::Workspace => {
            let dir = total.cwd.as_ref();
            dir.map(|dir| human::directory(dir, home.as_deref())).unwrap_or_default()
        }
        UsageBy::Day => total.day.map(|day| human::local(day, "%Y-%m-%d")).unwrap_or_default(),
    };
    ui.print(table(by, &report.totals, label).render(ui.out_width()))?;
    let count = |of: fn(&UsageTotal) -> u64| report.totals.iter().map(of).sum::<u64>();
    let (turns, untold) = (count(|total| total.turns), count(|total| total.untold));
    if untold > 0 {
        ui.note(text!("{} of {} turns: no usage reported by the agent", untold, turns));
    }
    Ok(())
}

fn table(by: UsageBy, totals: &[UsageTotal], label: impl Fn(&UsageTotal) -> Text) -> Table {
    let title = match by {
        UsageBy::Agent => "AGENT",
        UsageBy::Session => "SESSION",
        UsageBy::Workspace => "DIRECTORY",
        UsageBy::Day => "DAY",
    };
    let titles = [title, "TURNS", "TOKENS", "INPUT", "OUTPUT", "CACHED", "COST"];
    let rows = totals.iter().map(|total| row(Text::styled(BOLD, label(total)), total));
    let sum = (totals.len() > 1).then(|| row("total".into(), &sum(totals)));
    Table::new(titles, rows.chain(sum)).cut(title, Cut::Middle(12)).drop(&["CACHED", "INPUT"])
}

fn row(label: Text, total: &UsageTotal) -> [Text; 7] {
    let count = |count: Option<u64>| count.map(human::count).unwrap_or_default();
    let Tokens { total: all, input, output, cached_read, .. } = total.tokens;
    [
        label,
        text!("{}", total.turns),
        count(all),
        count(input),
        count(output),
        count(cached_read),
        human::costs(&total.costs),
    ]
}

/// Adds up the rows. A figure without values stays unknown.
fn sum(totals: &[UsageTotal]) -> UsageTotal {
    let mut sum = UsageTotal::default();
    let known = |of: fn(&Tokens) -> Option<u64>| {
        totals.iter().filter_map(|total| of(&total.tokens)).reduce(u64::saturating_add)
    };
    sum.tokens = Tokens {
        total: known(|tokens| tokens.total),
        input: known(|tokens| tokens.input),
        output: known(|tokens| tokens.output),
        cached_read: known(|tokens| tokens.cached_read),
        ..Tokens::default()
    };
    for total in totals {
        sum.turns += total.turns;
        for cost in &total.costs {
            match sum.costs.iter_mut().find(|so_far| so_far.currency == cost.currency) {
                Some(Cost { amount, .. }) => *amount = amount.plus(cost.amount),
                None => sum.costs.push(cost.clone()),
            }
        }
    }
    sum
}
