//! The time before clients are let in, in which agents of an earlier daemon are found again.

use std::collections::BTreeSet;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{Batch, Effect};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::crash;

/// How long clients have to wait at most, at the start, for agents that are being found again.
const ADOPTING: Duration = Duration::from_secs(1);

pub(super) struct Opening {
    /// None: clients are let in.
    tell: Option<oneshot::Sender<()>>,
    /// Clients are let in not later than this.
    by: Instant,
    /// Hosts that have not been found yet, or given up.
    adopting: BTreeSet<HostId>,
}

impl Opening {
    /// Begins to wait for the agents that `first` adopts.
    pub(super) fn new(tell: oneshot::Sender<()>, first: &Batch) -> Opening {
        let adopting = first.effects.iter().filter_map(|effect| match effect {
            Effect::Adopt(adopt) => Some(adopt.host),
            _ => None,
        });
        let adopting = adopting.collect();
        Opening { tell: Some(tell), by: Instant::now() + ADOPTING, adopting }
    }

    /// When clients are let in at the latest; none if they are.
    pub(super) fn by(&self) -> Option<Instant> {
        self.tell.as_ref().map(|_| self.by)
    }

    /// An agent is there again, or lost.
    pub(super) fn found(&mut self, host: HostId) {
        self.adopting.remove(&host);
    }

    /// Lets clients in when all agents have been found and that is `committed`, or the time is over.
    pub(super) fn open_if_ready(&mut self, committed: bool) {
        if !(committed && self.adopting.is_empty()) && Instant::now() < self.by {
            return;
        }
        if let Some(tell) = self.tell.take() {
            crash::point("recovered");
            // The receiver may be gone: the daemon ends already.
            tell.send(()).ok();
        }
    }
}
