//! Usage of today, for the head of `top`.

use acpd_api::{Untrusted, UsageBy, UsageParams, UsageReport, UsageTotal, method};
use acpd_view::human;
use acpd_view::text;
use acpd_view::text::Text;

use super::AppState;
use super::requests::{LinkId, Purpose};
use crate::canvas::DOT;

const DAY: u64 = 24 * 60 * 60 * 1000;
/// Milliseconds for which figures are not asked for again.
const FRESH: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct Today {
    asked: Option<u64>,
    total: Option<UsageTotal>,
}

impl Today {
    /// Takes the total of the last day of a report, if that has not ended.
    pub(super) fn take(&mut self, report: Option<UsageReport>, now: u64) {
        let totals = report.map(|report| report.totals).unwrap_or_default();
        let last = totals.into_iter().max_by_key(|total| total.day);
        self.total = last.filter(|total| total.day.is_some_and(|day| day + DAY > now));
    }

    /// Returns the figures in words, if any agent reports usage.
    pub(super) fn words(&self) -> Option<Text> {
        let total = self.total.as_ref()?;
        let costs = total.costs.iter().map(|cost| {
            let amount = Untrusted::of(cost.amount);
            match cost.currency.raw() {
                "USD" => text!("${}", amount),
                _ => text!("{} {}", amount, cost.currency),
            }
        });
        let tokens = total.tokens.total.filter(|count| *count > 0);
        let tokens = tokens.map(|count| text!("{} tokens", human::count(count)));
        let words = Text::join(costs.chain(tokens), DOT);
        (!words.is_empty()).then(|| text!("today {}", words))
    }
}

impl AppState {
    /// Asks for today's usage, unless the figures are fresh.
    pub(super) fn ask_usage(&mut self) {
        if self.today.asked.is_some_and(|asked| self.now.saturating_sub(asked) < FRESH) {
            return;
        }
        self.today.asked = Some(self.now);
        let params = UsageParams { since: self.now.saturating_sub(DAY), by: UsageBy::Day };
        self.out.send(LinkId::Fleet, method::USAGE, &params, Purpose::Usage);
    }
}
