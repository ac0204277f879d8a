//! What the turns of this day have used, for the head of `top`.

use acpd_api::{Untrusted, UsageBy, UsageParams, UsageReport, UsageTotal, method};
use acpd_view::human;
use acpd_view::text;
use acpd_view::text::Text;

use super::State;
use super::requests::{Link, Purpose};
use crate::canvas::DOT;

const DAY: u64 = 24 * 60 * 60 * 1000;
/// How long figures are good enough while turns end.
const FRESH: u64 = 30_000;

/// The figures of a day.
#[derive(Debug, Default)]
pub(super) struct Today {
    asked: Option<u64>,
    total: Option<UsageTotal>,
}

impl Today {
    /// Takes a report by day; the last one counts if it has not ended.
    pub(super) fn take(&mut self, report: Option<UsageReport>, now: u64) {
        let totals = report.map(|report| report.totals).unwrap_or_default();
        let last = totals.into_iter().max_by_key(|total| total.day);
        self.total = last.filter(|total| total.day.is_some_and(|day| day + DAY > now));
    }

    /// The figures in words, if any agent has told some.
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

impl State {
    /// Asks what was used today, unless that was asked a moment ago.
    pub(super) fn ask_usage(&mut self) {
        if self.today.asked.is_some_and(|asked| self.now.saturating_sub(asked) < FRESH) {
            return;
        }
        self.today.asked = Some(self.now);
        let params = UsageParams { since: self.now.saturating_sub(DAY), by: UsageBy::Day };
        self.out.send(Link::Fleet, method::USAGE, &params, Purpose::Usage);
    }
}
