//! How far the daemon is from its end, and who waits for that. `hub/shutdown.rs` carries it out.
//!
//! ```text
//!  Stays ── asked to stop ─▶ Ending ── its agents are gone, or it is asked again ─▶ Ended
//! ```

use crate::ids::Requester;

#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    stage: Stage,
    /// The user stopped the daemon, so no client has to return.
    for_good: bool,
    watchers: Vec<Requester>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Stays,
    Ending,
    Ended,
}

/// Clients that wait for the end.
#[derive(Debug)]
pub(crate) struct Farewell {
    /// The clients that asked for it.
    pub(crate) watchers: Vec<Requester>,
    /// Every client is told that it need not come back.
    pub(crate) for_good: bool,
}

impl Shutdown {
    /// No process is started any more.
    pub(crate) fn is_begun(&self) -> bool {
        self.stage != Stage::Stays
    }

    /// The daemon waits for its agents to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.stage == Stage::Ending
    }

    /// A person wants the daemon to end for good, and waits for that.
    pub(crate) fn watch(&mut self, to: Requester) {
        self.watchers.push(to);
        self.for_good = true;
    }

    /// Returns whether it had not begun before.
    pub(crate) fn begin(&mut self) -> bool {
        let is_news = self.stage == Stage::Stays;
        if is_news {
            self.stage = Stage::Ending;
        }
        is_news
    }

    pub(crate) fn end(&mut self) -> Farewell {
        self.stage = Stage::Ended;
        Farewell { watchers: std::mem::take(&mut self.watchers), for_good: self.for_good }
    }
}
