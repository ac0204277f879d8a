use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::report::ReportedProgress;
use crate::turns::{PromptOutcome, RunningTurn};

/// Shortest time between two reports.
const THROTTLE: Duration = Duration::from_millis(250);

/// Reports progress of a turn to a host that asked for it.
pub(crate) struct Teller<'a> {
    context: &'a RequestContext<RoleServer>,
    reported: ReportedProgress,
    count: u32,
    pace: Interval,
    news: Option<watch::Receiver<Option<PromptOutcome>>>,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>) -> Teller<'a> {
        // The first report is sent at once.
        let mut pace = interval(THROTTLE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Teller { context, reported: ReportedProgress::default(), count: 0, pace, news: None }
    }

    /// Waits for something new and reports it, limited by [`THROTTLE`].
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
        if self.context.meta.get_progress_token().is_none() {
            return;
        }
        let lines = {
            let waits = turn.waits();
            let state = turn.state();
            let last = state.turns().last();
            last.map(|last| self.reported.new_lines(last, waits)).unwrap_or_default()
        };
        if lines.is_empty() {
            return;
        }
        self.count += 1;
        progress(self.context, self.count, lines.join("\n")).await;
    }
}

/// Reports progress to a host that asked for it.
pub(crate) async fn progress(
    context: &RequestContext<RoleServer>,
    count: u32,
    message: impl Into<String>,
) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let progress = ProgressNotificationParam::new(token, count.into()).with_message(message);
    // Other calls notice that the host is gone.
    drop(context.peer.notify_progress(progress).await);
}
