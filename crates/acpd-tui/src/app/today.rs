//! Today's usage, for the head of `top`.

use acpd_api::{UsageBy, UsageParams, UsageReport, UsageTotal, method};
use acpd_view::human;
use acpd_view::text;
use acpd_view::text::Text;

use super::AppState;
use super::requests::{LinkId, Purpose};
use crate::canvas::DOT;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const FRESH_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct Today {
    asked: Option<u64>,
    total: Option<UsageTotal>,
}

impl Today {
    /// Takes the total of the last day, if that day has not ended.
    pub(super) fn take(&mut self, report: Option<UsageReport>, now: u64) {
        let totals = report.map(|report| report.totals).unwrap_or_default();
        let last = totals.into_iter().max_by_key(|total| total.day);
        self.total = last.filter(|total| total.day.is_some_and(|day| day + DAY_MS > now));
    }

    /// Returns none if no agent reports usage.
    pub(super) fn words(&self) -> Option<Text> {
        let total = self.total.as_ref()?;
        let costs = total.costs.iter().map(human::cost);
        let tokens = total.tokens.total.filter(|count| *count > 0);
        let tokens = tokens.map(|count| text!("{} tokens", human::count(count)));
        let words = Text::join(costs.chain(tokens), DOT);
        (!words.is_empty()).then(|| text!("today {}", words))
    }
}

impl AppState {
    pub(super) fn ask_usage(&mut self) {
        if self.today.asked.is_some_and(|asked| self.now.saturating_sub(asked) < FRESH_MS) {
            return;
        }
        self.today.asked = Some(self.now);
        let params = UsageParams { since: self.now.saturating_sub(DAY_MS), by: UsageBy::Day };
        self.out.send(LinkId::Fleet, method::USAGE, &params, Purpose::Usage);
    }
}
