//! Figures and counters of the daemon.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentState, SessionState, Untrusted};

/// Result of `_acpd/metrics`. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Version of the program.
    pub version: Untrusted,
    /// Start of the daemon and of every counter (ms since the epoch).
    pub since: u64,
    /// Time since the start of the daemon.
    pub uptime: f64,
    /// Resident memory of the daemon, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Number of connected clients.
    pub clients: u32,
    /// Agents that run or have run, and those with sessions.
    pub agents: Vec<AgentMetrics>,
    /// Number of sessions by state, with archived and without deleted ones.
    pub sessions: BTreeMap<SessionState, u32>,
    /// Figures of the turns of all sessions.
    pub turns: TurnMetrics,
    /// Lengths of the daemon's queues.
    pub queues: QueueMetrics,
    /// Figures of the journal.
    pub journal: JournalMetrics,
    /// Durations of turns, questions, starts and commits, as histograms.
    pub latencies: Latencies,
}

/// Figures of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMetrics {
    /// Name of the agent's profile.
    pub name: Untrusted,
    /// State of its process.
    pub state: AgentState,
    /// Restarts after unexpected exits.
    pub restarts: u64,
    /// Number of its sessions.
    pub sessions: u32,
    /// Number of processes in its trees, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Resident memory of these processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
}

/// Turns of all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMetrics {
    /// Number of running turns.
    pub running: u32,
    /// Open questions.
    pub questions: u32,
    /// Number of ended turns by outcome: the stop reasons of ACP, `interrupted`, `unwedged`,
    /// `outcome_unknown`, `error`, and `other` for stop reasons of agents.
    pub ended: BTreeMap<String, u64>,
}

/// Lengths of the daemon's queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueMetrics {
    /// Queued prompts.
    pub prompts: u64,
    /// Agents that wait until others have started.
    pub starts: u64,
    /// Lines that agents have not read.
    pub outbox_lines: u64,
    /// Size of these lines.
    pub outbox_bytes: u64,
    /// Uncommitted transactions.
    pub transactions: u64,
}

/// Figures of the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalMetrics {
    /// `false` while the journal cannot be written.
    pub writable: bool,
    /// Lines added to all journals.
    pub events: u64,
    /// Size of the database with its write-ahead log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Size of the search index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<u64>,
    /// Sessions deleted by limits of the configuration.
    #[serde(default)]
    pub expired: u64,
    /// Bytes of removed lines of deleted sessions.
    #[serde(default)]
    pub removed: u64,
    /// Bytes by which the database became shorter.
    #[serde(default)]
    pub given_back: u64,
}

/// Durations of turns, questions, starts and commits, as histograms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// A turn, from the dispatch of its prompt to its end.
    pub turn: Histogram,
    /// Time from the dispatch of a prompt to the agent's first update or question.
    pub first_update: Histogram,
    /// A permission question, from its start to its end.
    pub permission: Histogram,
    /// The start of an agent, from its process to its answer to `initialize`.
    pub agent_start: Histogram,
    /// A transaction, from the handover to the database to its commit.
    pub commit: Histogram,
}

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Buckets with rising limits. Each counts the values of the ones before it, too.
    pub buckets: Vec<Bucket>,
    /// Sum of all values.
    pub sum: f64,
    /// Number of all values.
    pub count: u64,
}

/// One bucket of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Upper limit of the bucket.
    pub le: f64,
    /// Number of values up to the limit.
    pub count: u64,
}
