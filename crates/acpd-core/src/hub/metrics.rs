//! `_acpd/metrics`: what the hub knows of it. The relay and the connection that answers add the rest.

use std::collections::{BTreeMap, BTreeSet};

use acpd_api::{JournalMetrics, Metrics, QueueMetrics, StoreState, TurnMetrics};

use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Batch, StatusPart};
use crate::process::slot::Slot;

impl Hub {
    pub(crate) fn send_metrics(&mut self, to: &Requester, out: &mut Batch) {
        let metrics = Box::new(self.metrics());
        self.send_status(to, StatusPart::Metrics(metrics), None, out);
    }

    /// The agents of which there is something to count.
    pub(crate) fn counted_agents(&self) -> BTreeSet<String> {
        let with_slots = self.processes.values().map(Slot::profile);
        let others = self.sessions.agents().chain(self.tally.restarted_agents());
        with_slots.map(str::to_owned).chain(others.cloned()).collect()
    }

    fn metrics(&self) -> Metrics {
        let facts = &self.config.daemon;
        let mut states = BTreeMap::new();
        for session in self.sessions.values() {
            *states.entry(session.api_state()).or_default() += 1;
        }
        let running = self.sessions.values().filter(|session| session.running.is_some());
        let outboxes = self.processes.with_process().filter_map(|slot| slot.host());
        let (mut lines, mut bytes) = (0, 0);
        for host in outboxes {
            lines += host.outbox.len() as u64;
            bytes += host.outbox.bytes as u64;
        }
        Metrics {
            version: facts.version.clone().into(),
            since: facts.since,
            uptime: self.now.0.saturating_sub(facts.since) as f64 / 1e3,
            rss: None,
            clients: self.clients.len() as u32,
            agents: Vec::new(),
            sessions: states,
            turns: TurnMetrics {
                running: running.count() as u32,
                questions: self.questions.iter().count() as u32,
                ended: self.tally.ended(),
            },
            queues: QueueMetrics {
                prompts: self.sessions.values().map(|session| session.queue.len() as u64).sum(),
                starts: self.processes.waiting_to_start() as u64,
                outbox_lines: lines,
                outbox_bytes: bytes,
                transactions: 0,
            },
            journal: JournalMetrics {
                writable: self.store_health.state() == StoreState::Ok,
                events: self.sessions.values().map(|session| session.head).sum(),
                bytes: None,
                index_bytes: None,
                expired: self.tally.expired(),
                removed: 0,
                given_back: 0,
            },
            latencies: self.tally.latencies(),
        }
    }
}
