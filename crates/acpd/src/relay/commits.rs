//! Batches in the store: first their records, then their effects, in order.

use std::collections::VecDeque;
use std::time::Instant;

use acpd_api::Histogram;
use acpd_core::{Accepted, Batch, Effect, Timing};
use acpd_store::{CommitBatch, Writer};

use crate::crash;

/// Uncommitted batches from which on hosts are held back.
const PENDING: usize = 32;

/// The store's writer has died. Nothing can be stored, so nothing may run.
pub(super) struct WriterDied;

struct Pending {
    /// `None` if there is nothing to commit, only an order to keep.
    tag: Option<u64>,
    /// When the records were given to the store.
    since: Option<Instant>,
    effects: Vec<Effect>,
    accepted: Vec<Accepted>,
}

pub(super) struct Commits {
    writer: Writer,
    pending: VecDeque<Pending>,
    next_tag: u64,
    failing: bool,
    /// Times of transactions.
    took: Timing,
}

impl Commits {
    pub(super) fn new(writer: Writer) -> Commits {
        let (pending, took) = (VecDeque::new(), Timing::quick());
        Commits { writer, pending, next_tag: 0, failing: false, took }
    }

    pub(super) fn into_writer(self) -> Writer {
        self.writer
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn latency(&self) -> Histogram {
        self.took.histogram()
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    /// Returns whether agents may be read.
    pub(super) fn has_room(&self) -> bool {
        !self.failing && self.pending.len() < PENDING
    }

    /// Gives the records of a batch to the store, and queues its effects. Returns the effects if
    /// they have nothing to wait for. `urgent` effects are not handled here.
    pub(super) fn push(&mut self, batch: Batch) -> Result<Vec<Effect>, WriterDied> {
        let needs_commit = !batch.records.is_empty();
        if !needs_commit && (self.pending.is_empty() || batch.effects.is_empty()) {
            return Ok(batch.effects);
        }
        crash::point("before-commit");
        self.queue(batch, needs_commit)?;
        Ok(Vec::new())
    }

    /// Sends an empty batch through the store, whose report is a sign of life.
    pub(super) fn push_nothing(&mut self) -> Result<(), WriterDied> {
        self.queue(Batch::default(), true)
    }

    fn queue(&mut self, batch: Batch, needs_commit: bool) -> Result<(), WriterDied> {
        let Batch { records, durable, effects, accepted, .. } = batch;
        self.next_tag += u64::from(needs_commit);
        let tag = needs_commit.then_some(self.next_tag);
        let since = (!records.is_empty()).then(Instant::now);
        self.pending.push_back(Pending { tag, since, effects, accepted });
        let Some(tag) = tag else { return Ok(()) };
        self.writer.commit(CommitBatch { records, durable, tag }).map_err(|_| WriterDied)
    }

    /// Returns the effects of the next batch up to the committed `tag`.
    pub(super) fn next_committed(&mut self, tag: u64) -> Option<Vec<Effect>> {
        let next = self.pending.pop_front_if(|next| next.tag.is_none_or(|own| own <= tag))?;
        if let Some(since) = next.since {
            self.took.took(since.elapsed());
        }
        if !next.effects.is_empty() {
            crash::point("after-commit");
        }
        Some(next.effects)
    }

    /// Records that the journal cannot be written. Returns the effects and requests that wait for
    /// it.
    pub(super) fn fails(&mut self) -> (Vec<&mut Vec<Effect>>, Vec<Accepted>) {
        self.failing = true;
        let mut accepted = Vec::new();
        let batches = self.pending.iter_mut().map(|batch| {
            accepted.append(&mut batch.accepted);
            &mut batch.effects
        });
        (batches.collect(), accepted)
    }

    /// Records that the journal can be written. Returns whether that is news.
    pub(super) fn works(&mut self) -> bool {
        std::mem::take(&mut self.failing)
    }
}
