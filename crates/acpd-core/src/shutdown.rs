//! Progress of the daemon's end, and clients that wait for it. `hub/shutdown.rs` performs it.
//!
//! ```text
//!  Stays ── asked to stop ─▶ Ending ── its agents are gone, or it is asked again ─▶ Ended
//! ```

use crate::ids::Requester;

#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    stage: Stage,
    /// The user stopped the daemon, so clients need not reconnect.
    pub(crate) for_good: bool,
    watchers: Vec<Requester>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Stays,
    Ending,
    Ended,
}

impl Shutdown {
    pub(crate) fn is_begun(&self) -> bool {
        self.stage != Stage::Stays
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.stage == Stage::Ending
    }

    pub(crate) fn watch(&mut self, to: Requester) {
        self.watchers.push(to);
        self.for_good = true;
    }

    pub(crate) fn begin(&mut self) {
        self.stage = Stage::Ending;
    }

    /// Returns the clients that wait for the end.
    pub(crate) fn end(&mut self) -> Vec<Requester> {
        self.stage = Stage::Ended;
        std::mem::take(&mut self.watchers)
    }
}
