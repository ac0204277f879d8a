//! What the daemon counts: figures of now, and counters since it started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentState, SessionState, Untrusted};

/// Result of `_acpd/metrics`. Times are seconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Version of the program.
    pub version: Untrusted,
    /// When the daemon started (ms since the epoch). Every counter began then.
    pub since: u64,
    /// For how long it runs.
    pub uptime: f64,
    /// Its resident memory, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Connected clients.
    pub clients: u32,
    /// The agents that run or have run, and those with sessions.
    pub agents: Vec<AgentMetrics>,
    /// How many sessions are in each state. Archived ones count, deleted ones do not.
    pub sessions: BTreeMap<SessionState, u32>,
    /// Turns.
    pub turns: TurnMetrics,
    /// What waits.
    pub queues: QueueMetrics,
    /// The journal.
    pub journal: JournalMetrics,
    /// How long things took.
    pub latencies: Latencies,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMetrics {
    /// Profile name.
    pub name: Untrusted,
    /// State of its process.
    pub state: AgentState,
    /// Restarts after unexpected exits.
    pub restarts: u64,
    /// Its sessions.
    pub sessions: u32,
    /// Processes of its trees, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Their resident memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
}

/// Turns of all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnMetrics {
    /// Those that run now.
    pub running: u32,
    /// Questions that wait for a person now.
    pub questions: u32,
    /// Those that have ended, by how: the stop reasons of ACP, `interrupted`, `unwedged`, `outcome_unknown`, `error`, and
    /// `other` for what an agent has called otherwise.
    pub ended: BTreeMap<String, u64>,
}

/// What waits, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueMetrics {
    /// Prompts that wait for a turn to end, or for their agent.
    pub prompts: u64,
    /// Agents that wait until others have started.
    pub starts: u64,
    /// Lines that agents have not taken yet.
    pub outbox_lines: u64,
    /// Their size.
    pub outbox_bytes: u64,
    /// Transactions that are not committed yet.
    pub transactions: u64,
}

/// The journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalMetrics {
    /// It can be written.
    pub writable: bool,
    /// Lines that the journals of all sessions have been given.
    pub events: u64,
    /// Size of the database with its write-ahead log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Size of the search index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<u64>,
    /// Sessions that limits of the configuration have let go.
    #[serde(default)]
    pub expired: u64,
    /// Lines of deleted sessions that were removed, in bytes.
    #[serde(default)]
    pub removed: u64,
    /// By how much the database has become shorter.
    #[serde(default)]
    pub given_back: u64,
}

/// How long things took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// A turn, from its prompt going to the agent to its end.
    pub turn: Histogram,
    /// From the prompt going to the agent until the agent said or asked something.
    pub first_update: Histogram,
    /// A permission question, from its being asked to its end.
    pub permission: Histogram,
    /// The start of an agent, from its process being made to its answer to `initialize`.
    pub agent_start: Histogram,
    /// A transaction, from its being given to the database to its commit.
    pub commit: Histogram,
}

/// How often something took how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Histogram {
    /// With rising limits. Each counts what the ones before it count, too.
    pub buckets: Vec<Bucket>,
    /// All of it together.
    pub sum: f64,
    /// How often in all.
    pub count: u64,
}

/// One bucket of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// What took at most so long,
    pub le: f64,
    /// did so this often.
    pub count: u64,
}
