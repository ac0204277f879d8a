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
    turn: &'a RunningTurn,
    news: watch::Receiver<Option<PromptOutcome>>,
    reported: ReportedProgress,
    count: u32,
    pace: Interval,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(
        context: &'a RequestContext<RoleServer>,
        turn: &'a RunningTurn,
    ) -> Teller<'a> {
        // The first report is sent at once.
        let mut pace = interval(THROTTLE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (news, reported) = (turn.news(), ReportedProgress::default());
        Teller { context, turn, news, reported, count: 0, pace }
    }

    /// Reports what is new, limited by [`THROTTLE`], as long as the turn has news.
    pub(crate) async fn follow(&mut self) {
        while self.news.changed().await.is_ok() {
            self.pace.tick().await;
            self.tell().await;
        }
    }

    pub(crate) async fn tell(&mut self) {
        if self.context.meta.get_progress_token().is_none() {
            return;
        }
        let lines = {
            let waits = self.turn.waits();
            let state = self.turn.state();
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
