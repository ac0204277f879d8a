//! Daily spending and its limit. Over the limit, turns are held if the user must be asked.

use acpd_api::{Amount, BudgetInfo, Cost, TurnUsage, Untrusted};
use jiff::{Timestamp, Zoned};

use crate::cx::Cx;
use crate::ids::Time;
use crate::profile::{BudgetLimit, Config, WhenOver};
use crate::record::{Record, SessionRow, Spent, UsageRow};

#[derive(Debug, Default)]
pub(crate) struct Budget {
    day: Time,
    spent: Amount,
    /// The user's allowance, in memory only: the next daemon asks again.
    allowed: Amount,
    is_warned: bool,
    may_continue: bool,
}

impl Budget {
    pub(crate) fn new(spent: &Spent, limit: Option<&BudgetLimit>) -> Budget {
        let parts = limit.and_then(|limit| spent.parts.get(limit.per_day.currency.raw()));
        let parts = Amount::from_parts(parts.copied().unwrap_or_default());
        Budget { day: spent.day, spent: parts, ..Budget::default() }
    }

    /// Books usage of a session, in this turn or between turns. Returns a warning, once, when the
    /// budget is used up.
    pub(crate) fn on_used(
        &mut self,
        cx: &mut Cx,
        (row, turn): (&SessionRow, Option<u64>),
        TurnUsage { tokens, cost }: TurnUsage,
    ) -> Option<String> {
        let used = UsageRow {
            at: cx.now,
            day: day(&cx.config, cx.now),
            agent: row.agent.clone(),
            session: row.public_id.clone(),
            cwd: row.cwd.clone(),
            turn,
            tokens,
            cost,
        };
        self.book(&used, cx.config.budget.as_ref());
        cx.record(Record::Usage(used));
        let info = self.info(&cx.config, cx.now).filter(|info| info.is_over)?;
        let is_first = !std::mem::replace(&mut self.is_warned, true);
        is_first.then(|| format!("the budget is used up: {}", sentence(&info)))
    }

    /// Other currencies are not booked, because an agent can name any number of them.
    fn book(&mut self, row: &UsageRow, limit: Option<&BudgetLimit>) {
        if row.day > self.day {
            *self = Budget { day: row.day, ..Budget::default() };
        }
        let counts = |cost: &&Cost| limit.is_some_and(|of| of.per_day.currency == cost.currency);
        if let Some(cost) = row.cost.as_ref().filter(counts).filter(|_| row.day == self.day) {
            self.spent = self.spent.plus(cost.amount);
        }
    }

    pub(crate) fn info(&self, config: &Config, now: Time) -> Option<BudgetInfo> {
        let per_day = config.budget.as_ref()?.per_day.clone();
        let is_today = self.day == day(config, now);
        let spent = if is_today { self.spent } else { Amount::default() };
        Some(BudgetInfo { is_over: spent >= per_day.amount, per_day, spent })
    }

    /// Returns the state of the budget if the user must allow the next turn.
    pub(crate) fn hold(&self, config: &Config, now: Time) -> Option<BudgetInfo> {
        let limit = config.budget.as_ref().filter(|limit| limit.when_over == WhenOver::Ask)?;
        // Computes the start of the day only if the limit may be reached.
        let may_hold = self.spent >= limit.per_day.amount && self.spent >= self.allowed;
        let info = may_hold.then(|| self.info(config, now))??;
        (info.is_over && info.spent >= self.allowed).then_some(info)
    }

    pub(crate) fn allow(&mut self, info: &BudgetInfo) {
        self.allowed = info.spent.plus(info.per_day.amount);
        self.may_continue = true;
    }

    pub(crate) fn on_next_day(&mut self) {
        self.may_continue = true;
    }

    /// Returns, once, whether waiting sessions can continue.
    pub(crate) fn take_may_continue(&mut self) -> bool {
        std::mem::take(&mut self.may_continue)
    }
}

/// Returns the start of the day.
fn day(config: &Config, now: Time) -> Time {
    start_of(config, now, |today| today.start_of_day())
}

/// Returns the start of the next day.
pub(crate) fn next_day(config: &Config, now: Time) -> Time {
    start_of(config, now, |today| today.tomorrow()?.start_of_day())
}

fn start_of(
    config: &Config,
    now: Time,
    of: impl FnOnce(Zoned) -> Result<Zoned, jiff::Error>,
) -> Time {
    let zoned = Timestamp::from_millisecond(now.0 as i64).ok();
    let zoned = zoned.map(|now| now.to_zoned((config.time_zone)()));
    let start = zoned.and_then(|now| of(now).ok());
    start.map_or(now, |start| Time(start.timestamp().as_millisecond() as u64))
}

pub(crate) fn question(info: &BudgetInfo) -> String {
    let spent = money(info.spent, &info.per_day.currency);
    let limit = money(info.per_day.amount, &info.per_day.currency);
    format!("Today's budget is used up ({spent} of {limit}). Start another turn?")
}

/// Formats an amount: `$0.03`, `0.03 EUR`.
pub(crate) fn money(amount: Amount, currency: &Untrusted) -> String {
    match currency.raw() {
        "USD" => format!("${amount}"),
        _ => format!("{amount} {}", currency.one_line()),
    }
}

pub(crate) fn sentence(info: &BudgetInfo) -> String {
    let Cost { amount, currency } = &info.per_day;
    format!("{} of {amount} {} were spent today", info.spent, currency.one_line())
}
