//! Spending of a day and its limit. The hub asks this module before a turn begins.

use acpd_api::{Amount, BudgetInfo, Cost, Untrusted};

use crate::ids::Time;
use crate::profile::BudgetLimit;
use crate::record::{Spent, UsageRow};

/// Spending of a day in the currency of the limit, and the user's consent.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    day: Time,
    spent: Amount,
    /// Spending that the user allowed. In memory only: the next daemon asks again.
    allowed: Amount,
    /// People were told that it is used up.
    told: bool,
    /// The user has allowed more, and the sessions have not been continued since.
    goes_on: bool,
}

impl Budget {
    pub(crate) fn new(spent: &Spent, limit: Option<&BudgetLimit>) -> Budget {
        let parts = limit.and_then(|limit| spent.parts.get(limit.per_day.currency.raw()));
        let parts = Amount::from_parts(parts.copied().unwrap_or_default());
        Budget { day: spent.day, spent: parts, ..Budget::default() }
    }

    /// Other currencies are not added up: an agent can name any number of them.
    pub(crate) fn book(&mut self, row: &UsageRow, limit: Option<&BudgetLimit>) {
        if row.day > self.day {
            *self = Budget { day: row.day, ..Budget::default() };
        }
        let counts = |cost: &&Cost| limit.is_some_and(|of| of.per_day.currency == cost.currency);
        if let Some(cost) = row.cost.as_ref().filter(counts).filter(|_| row.day == self.day) {
            self.spent = self.spent.plus(cost.amount);
        }
    }

    /// How it stands with a limit on the day that began then.
    pub(crate) fn info(&self, limit: &BudgetLimit, day: Time) -> BudgetInfo {
        let spent = if self.day == day { self.spent } else { Amount::default() };
        let per_day = limit.per_day.clone();
        BudgetInfo { is_over: spent >= per_day.amount, per_day, spent }
    }

    /// Returns whether a person must allow the next turn.
    pub(crate) fn holds(&self, info: &BudgetInfo) -> bool {
        info.is_over && info.spent >= self.allowed
    }

    /// A person lets it go on until as much again is spent.
    pub(crate) fn allow(&mut self, info: &BudgetInfo) {
        self.allowed = info.spent.plus(info.per_day.amount);
        self.goes_on = true;
    }

    /// Returns whether the sessions that waited for it are to be continued, once.
    pub(crate) fn take_goes_on(&mut self) -> bool {
        std::mem::take(&mut self.goes_on)
    }

    /// Returns whether the budget has just been used up.
    pub(crate) fn is_news(&mut self, info: &BudgetInfo) -> bool {
        info.is_over && !std::mem::replace(&mut self.told, info.is_over)
    }
}

/// Asks for permission to spend more today.
pub(crate) fn question(info: &BudgetInfo) -> String {
    let spent = money(info.spent, &info.per_day.currency);
    let limit = money(info.per_day.amount, &info.per_day.currency);
    format!("Today's budget is used up ({spent} of {limit}). Start another turn?")
}

/// An amount as people write it: `$0.03`, `0.03 EUR`.
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
