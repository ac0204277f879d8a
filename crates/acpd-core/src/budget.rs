//! What may be spent in a day, and what was. It knows nothing of the hub, which asks before a turn begins.

use acpd_api::{Amount, BudgetInfo, Cost};

use crate::ids::Time;
use crate::profile::BudgetLimit;
use crate::record::{Spent, UsageRow};

/// What was spent on a day, and what a person has said of it.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    spent: Spent,
    /// A person lets it go on until so much is spent. Forgotten with the daemon: then it is asked again.
    allowed: Amount,
    /// People were told that it is used up.
    told: bool,
}

impl Budget {
    pub(crate) fn new(spent: Spent) -> Budget {
        Budget { spent, ..Budget::default() }
    }

    pub(crate) fn book(&mut self, row: &UsageRow) {
        if row.day > self.spent.day {
            *self = Budget::default();
        }
        self.spent.add(row);
    }

    /// How it stands with a limit on the day that began then.
    pub(crate) fn info(&self, limit: &BudgetLimit, day: Time) -> BudgetInfo {
        let currency = &limit.per_day.currency;
        let of_it = self.spent.parts.iter().filter(|((_, of), _)| *currency == *of);
        let today = of_it.filter(|_| self.spent.day == day);
        let spent =
            today.fold(Amount::default(), |sum, (_, parts)| sum.plus(Amount::from_parts(*parts)));
        let per_day = limit.per_day.clone();
        BudgetInfo { is_over: spent >= per_day.amount, per_day, spent }
    }

    /// Whether a person has to let the next turn begin.
    pub(crate) fn holds(&self, info: &BudgetInfo) -> bool {
        info.is_over && info.spent >= self.allowed
    }

    /// A person lets it go on until as much again is spent.
    pub(crate) fn allow(&mut self, info: &BudgetInfo) {
        self.allowed = info.spent.plus(info.per_day.amount);
    }

    /// Whether it is news that it is used up.
    pub(crate) fn is_news(&mut self, info: &BudgetInfo) -> bool {
        info.is_over && !std::mem::replace(&mut self.told, info.is_over)
    }
}

/// Both figures in words.
pub(crate) fn sentence(info: &BudgetInfo) -> String {
    let Cost { amount, currency } = &info.per_day;
    format!("{} of {amount} {} were spent today", info.spent, currency.one_line())
}
