//! Progress of a turn, for a host that waits for it.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::report::Told;
use crate::turns::{PromptOutcome, RunningTurn};

/// The shortest time between two progress reports.
const THROTTLE: Duration = Duration::from_millis(250);

/// When something was told last.
#[derive(Debug, Clone, Copy, Default)]
struct Pace(Option<Instant>);

impl Pace {
    /// How long news wait; they count as told when that is over.
    fn next(&mut self, now: Instant) -> Duration {
        let since = self.0.map(|last| now.saturating_duration_since(last));
        let pause = since.map_or(Duration::ZERO, |since| THROTTLE.saturating_sub(since));
        self.0 = Some(now + pause);
        pause
    }
}

/// Tells the host what happens in a turn, if it wants to know.
pub(crate) struct Teller<'a> {
    context: &'a RequestContext<RoleServer>,
    told: Told,
    count: u32,
    pace: Pace,
    news: Option<watch::Receiver<Option<PromptOutcome>>>,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>) -> Teller<'a> {
        Teller { context, told: Told::default(), count: 0, pace: Pace::default(), news: None }
    }

    /// Tells what is new, when there is something, but not too often.
    pub(crate) async fn follow(&mut self, turn: &RunningTurn) {
        let news = self.news.get_or_insert_with(|| turn.news());
        if news.changed().await.is_err() {
            // The turn is over.
            return std::future::pending().await;
        }
        sleep(self.pace.next(Instant::now())).await;
        self.tell(turn).await;
    }

    pub(crate) async fn tell(&mut self, turn: &RunningTurn) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let lines = {
            let waits = turn.waits();
            let state = turn.state();
            let last = state.turns().last();
            last.map(|last| self.told.news(last, waits)).unwrap_or_default()
        };
        if lines.is_empty() {
            return;
        }
        self.count += 1;
        let progress =
            ProgressNotificationParam::new(token, self.count.into()).with_message(lines.join("\n"));
        // A host that is gone is noticed elsewhere.
        drop(self.context.peer.notify_progress(progress).await);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn news_are_told_four_times_a_second_at_most_and_wait_no_longer_than_that(
            gaps in vec(0_u64..2000, 1..50),
        ) {
            let mut pace = Pace::default();
            let mut now = Instant::now();
            let mut last: Option<Instant> = None;
            for gap in gaps {
                now += Duration::from_millis(gap);
                let pause = pace.next(now);
                prop_assert!(pause <= THROTTLE);
                // A follower that waits gets nothing else meanwhile.
                now += pause;
                prop_assert!(last.is_none_or(|last| now - last >= THROTTLE));
                prop_assert!(pause.is_zero() || last.is_some());
                last = Some(now);
            }
        }
    }

    #[test]
    fn the_first_news_are_told_at_once_and_what_comes_after_a_while_as_well() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert_eq!(pace.next(now), Duration::ZERO);
        assert_eq!(pace.next(now), THROTTLE);
        assert_eq!(pace.next(now + 3 * THROTTLE), Duration::ZERO);
    }
}
