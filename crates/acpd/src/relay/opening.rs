//! The time before clients are accepted, in which agents of an earlier daemon are found again.

use std::collections::BTreeSet;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{Batch, Effect};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::crash;

/// Longest wait of clients for agents that are being found.
const ADOPTING: Duration = Duration::from_secs(1);

pub(super) struct Opening {
    /// `None` once clients are accepted.
    tell: Option<oneshot::Sender<()>>,
    /// Latest time to accept clients.
    by: Instant,
    /// Hosts that are neither found nor given up.
    pub(super) adopting: BTreeSet<HostId>,
}

impl Opening {
    /// Waits for the agents that `first` adopts.
    pub(super) fn new(tell: oneshot::Sender<()>, first: &Batch) -> Opening {
        let adopting = first.effects.iter().filter_map(|effect| match effect {
            Effect::Adopt(adopt) => Some(adopt.row.host),
            _ => None,
        });
        let adopting = adopting.collect();
        Opening { tell: Some(tell), by: Instant::now() + ADOPTING, adopting }
    }

    pub(super) fn by(&self) -> Option<Instant> {
        self.tell.as_ref().map(|_| self.by)
    }

    /// Accepts clients when all agents are found and that is `committed`, or the time is over.
    pub(super) fn open_if_ready(&mut self, committed: bool) {
        if !(committed && self.adopting.is_empty()) && Instant::now() < self.by {
            return;
        }
        if let Some(tell) = self.tell.take() {
            crash::point("recovered");
            tell.send(()).ok();
        }
    }
}
