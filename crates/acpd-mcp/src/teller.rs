//! Progress of a turn, for a host that waits for it.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::report::Told;
use crate::turns::{PromptOutcome, RunningTurn};

/// The shortest time between two progress reports.
const THROTTLE: Duration = Duration::from_millis(250);

/// Tells the host what happens in a turn, if it wants to know.
pub(crate) struct Teller<'a> {
    context: &'a RequestContext<RoleServer>,
    told: Told,
    count: u32,
    pace: Interval,
    news: Option<watch::Receiver<Option<PromptOutcome>>>,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>) -> Teller<'a> {
        // The first report is sent at once.
        let mut pace = interval(THROTTLE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Teller { context, told: Told::default(), count: 0, pace, news: None }
    }

    /// Tells what is new, when there is something, but not too often.
    pub(crate) async fn follow(&mut self, turn: &RunningTurn) {
        let news = self.news.get_or_insert_with(|| turn.news());
        if news.changed().await.is_err() {
            // The turn is over.
            return std::future::pending().await;
        }
        self.pace.tick().await;
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
