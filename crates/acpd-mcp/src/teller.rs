//! Progress of a turn, for a host that waits for it.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::report::Told;
use crate::running::{End, Running};

/// Progress is told at most so often.
const THROTTLE: Duration = Duration::from_millis(250);

/// Tells the host what happens in a turn, if it wants to know.
pub(crate) struct Teller<'a> {
    context: &'a RequestContext<RoleServer>,
    told: Told,
    count: u32,
    /// When it was told last.
    at: Option<Instant>,
    news: Option<watch::Receiver<Option<End>>>,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>) -> Teller<'a> {
        Teller { context, told: Told::default(), count: 0, at: None, news: None }
    }

    /// Tells what is new, when there is something, but not too often.
    pub(crate) async fn follow(&mut self, turn: &Running) {
        let news = self.news.get_or_insert_with(|| turn.news());
        if news.changed().await.is_err() {
            // It is over.
            return std::future::pending().await;
        }
        if let Some(at) = self.at {
            sleep(THROTTLE.saturating_sub(at.elapsed())).await;
        }
        self.at = Some(Instant::now());
        self.tell(turn).await;
    }

    pub(crate) async fn tell(&mut self, turn: &Running) {
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
