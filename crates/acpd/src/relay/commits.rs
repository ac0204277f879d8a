//! Batches on their way through the store: records first, effects after that, in order.

use std::sync::mpsc::TrySendError;

use acpd_core::{Batch, Input};
use acpd_store::{CommitBatch, Report, StoreError};

use super::{End, Pending, Relay, Sources};
use crate::crash;
use crate::service::Pulse;

impl Relay {
    /// Performs what is committed, without taking up anything new.
    pub(super) async fn last_effects(&mut self, from: &mut Sources) {
        while !self.pending.is_empty() {
            let Some(report) = from.reports.recv().await else { return };
            self.reported(report, &mut from.pulse, &mut Batch::default());
        }
    }

    /// Sends a round through hub and store, for the service manager.
    pub(super) fn pulse(&mut self, pulse: &mut Pulse) {
        if self.failing {
            // The store has answered: it tries again by itself, and says nothing until it can.
            return pulse.answer();
        }
        pulse.asked();
        self.next_tag += 1;
        let tag = self.next_tag;
        self.pending.push_back(Pending {
            tag: Some(tag),
            effects: Vec::new(),
            accepted: Vec::new(),
        });
        self.unsent.push_back(CommitBatch { records: Vec::new(), durable: false, tag });
        self.send_unsent();
    }

    pub(super) fn reported(&mut self, report: Report, pulse: &mut Pulse, out: &mut Batch) {
        // Here, and not where reports come in: that is several places.
        pulse.beat();
        match report {
            Report::Committed { tag } => {
                self.store_works(out);
                while let Some(pending) =
                    self.pending.pop_front_if(|p| p.tag.is_none_or(|t| t <= tag))
                {
                    if !pending.effects.is_empty() {
                        crash::point("after-commit");
                    }
                    self.perform_all(pending.effects, out);
                }
                self.send_unsent();
            }
            Report::Failing { reason, .. } => self.store_fails(&reason, out),
            Report::Works => self.store_works(out),
        }
    }

    pub(super) fn store_works(&mut self, out: &mut Batch) {
        if std::mem::take(&mut self.failing) {
            tracing::warn!("the journal can be written again");
            self.input(Input::StoreWorks, out);
        }
    }

    /// The journal cannot be written: whoever asked for something that is not written is told.
    pub(super) fn store_fails(&mut self, reason: &StoreError, out: &mut Batch) {
        let hint = reason.hint().map(str::to_owned);
        let reason = reason.to_string();
        tracing::error!(reason, "the journal cannot be written; trying again");
        self.failing = true;
        self.input(Input::StoreFailing { reason, hint }, out);
        let pending = self.pending.iter_mut();
        let (mut batches, accepted): (Vec<_>, Vec<_>) =
            pending.map(|batch| (&mut batch.effects, std::mem::take(&mut batch.accepted))).unzip();
        let mut accepted: Vec<_> = accepted.into_iter().flatten().collect();
        accepted.append(&mut out.accepted);
        let mut last = std::mem::take(&mut out.effects);
        batches.push(&mut last);
        self.hub.answer_unwritten(accepted, &mut batches, out);
        last.append(&mut out.effects);
        out.effects = last;
    }

    /// Gives a batch to the store, its effects into the line behind it.
    pub(super) fn submit(&mut self, batch: Batch) {
        let mut after = Batch::default();
        self.perform_all(batch.urgent, &mut after);
        if batch.records.is_empty() && self.pending.is_empty() {
            self.perform_all(batch.effects, &mut after);
        } else if !batch.records.is_empty() || !batch.effects.is_empty() {
            crash::point("before-commit");
            let tag = (!batch.records.is_empty()).then(|| {
                self.next_tag += 1;
                self.next_tag
            });
            let Batch { effects, accepted, .. } = batch;
            self.pending.push_back(Pending { tag, effects, accepted });
            if let Some(tag) = tag {
                let (records, durable) = (batch.records, batch.durable);
                self.unsent.push_back(CommitBatch { records, durable, tag });
                self.send_unsent();
            }
        }
        // Effects can fail at once (a process that cannot be made): that is news for the hub.
        if !after.is_empty() {
            self.hub.seal(&mut after);
            self.submit(after);
        }
    }

    pub(super) fn send_unsent(&mut self) {
        while let Some(batch) = self.unsent.pop_front() {
            match self.writer.commit(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => return self.unsent.push_front(batch),
                Err(TrySendError::Disconnected(_)) => {
                    return self.store_died();
                }
            }
        }
    }

    /// Nothing can be kept any more, so nothing may run.
    pub(super) fn store_died(&mut self) {
        tracing::error!("the store's writer has died");
        self.end = Some(End::Aborted);
    }
}
