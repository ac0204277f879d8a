//! Figures and counters of the daemon, in the text format of Prometheus.
//!
//! Names begin with `acpd_` and end with the unit; counters also end with `_total`. Each family has
//! its description (`# HELP`) and kind (`# TYPE`) before its values.

use std::fmt::{Display, Write as _};

use acpd_api::{AgentMetrics, AgentState, Histogram, Metrics, Untrusted};

use crate::human::word;
use crate::text::{Text, text};

const AGENT_STATES: &str = "stopped starting initializing needs_auth ready stopping backoff failed";
const SESSION_STATES: &str = "live parked restoring blocked lost closed";

/// Each family: name, kind and description.
const FAMILIES: &str = "\
acpd_build_info gauge The version of the daemon; the value is always 1.
acpd_start_time_seconds gauge When the daemon started, since the epoch.
acpd_uptime_seconds gauge For how long the daemon runs.
acpd_resident_memory_bytes gauge Resident memory of the daemon.
acpd_clients gauge Connected clients, with the one that asks.
acpd_agents gauge Agents by state.
acpd_agent_up gauge 1 if the agent can be used, 0 if not.
acpd_agent_restarts_total counter Restarts after unexpected exits of the agent.
acpd_agent_sessions gauge Sessions of the agent.
acpd_agent_processes gauge Processes of the agent.
acpd_agent_resident_memory_bytes gauge Resident memory of those processes.
acpd_sessions gauge Sessions by state.
acpd_turns_running gauge Turns that run.
acpd_questions_open gauge Questions that wait for a person.
acpd_turns_ended_total counter Turns that have ended, by how.
acpd_prompts_queued gauge Prompts that wait for their turn.
acpd_agent_starts_queued gauge Agents that wait until others have started.
acpd_outbox_lines gauge Lines that agents have not taken yet.
acpd_outbox_bytes gauge Size of those lines.
acpd_transactions_pending gauge Transactions that are not committed yet.
acpd_journal_writable gauge 1 if the journal can be written, 0 if not.
acpd_journal_events gauge Lines in the journals of all sessions.
acpd_journal_bytes gauge Size of the database, with its log.
acpd_search_index_bytes gauge Size of the search index, with its log.
acpd_sessions_expired_total counter Sessions that limits of the configuration have let go.
acpd_journal_removed_bytes_total counter Lines of deleted sessions that were removed.
acpd_journal_given_back_bytes_total counter By how much the database has become shorter.
acpd_turn_duration_seconds histogram How long turns took.
acpd_turn_first_update_seconds histogram Until the agent said or asked something in a turn.
acpd_permission_wait_seconds histogram How long permission questions were open.
acpd_agent_start_seconds histogram How long starts of agents took.
acpd_commit_seconds histogram How long commits of transactions took.";

/// Returns the metrics page. Labels contain no newlines, and other control characters are shown by
/// number.
pub(crate) fn text(metrics: &Metrics) -> Text {
    text!("{}", Untrusted::from(page(metrics)).prose())
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str) {
        let mut families = FAMILIES.lines().filter_map(|line| line.split_once(' '));
        let of_name = families.find(|(family, _)| *family == name);
        let (kind, help) = of_name
            .and_then(|(_, rest)| rest.split_once(' '))
            .expect("each family has a line in the table");
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, label: &str, text: &str, value: impl Display) {
        let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let _ = writeln!(self.0, "{name}{{{label}=\"{text}\"}} {value}");
    }

    /// Adds a family with one value, or nothing if the value is unknown.
    fn value(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.family(name);
            let _ = writeln!(self.0, "{name} {value}");
        }
    }

    /// Adds one value per label; a family without values is omitted.
    fn labelled<V: Display>(
        &mut self,
        name: &str,
        label: &str,
        values: impl IntoIterator<Item = (impl AsRef<str>, V)>,
    ) {
        for (at, (text, value)) in values.into_iter().enumerate() {
            if at == 0 {
                self.family(name);
            }
            self.sample(name, label, text.as_ref(), value);
        }
    }

    fn histogram(&mut self, name: &str, Histogram { buckets, sum, count }: &Histogram) {
        self.family(name);
        let bucket = format!("{name}_bucket");
        for of in buckets {
            self.sample(&bucket, "le", &of.le.to_string(), of.count);
        }
        self.sample(&bucket, "le", "+Inf", count);
        let _ = write!(self.0, "{name}_sum {sum}\n{name}_count {count}\n");
    }
}

fn page(metrics: &Metrics) -> String {
    let Metrics { turns, queues, journal, latencies, .. } = metrics;
    let mut page = Page::default();
    page.labelled("acpd_build_info", "version", [(metrics.version.raw(), 1)]);
    page.value("acpd_start_time_seconds", Some(metrics.since as f64 / 1e3));
    page.value("acpd_uptime_seconds", Some(metrics.uptime));
    page.value("acpd_resident_memory_bytes", metrics.rss);
    page.value("acpd_clients", Some(metrics.clients));
    agents(&mut page, &metrics.agents);
    let in_state = SESSION_STATES.split(' ').map(|state| {
        let count = metrics.sessions.iter().find(|(of, _)| word(of) == state);
        (state, count.map_or(0, |(_, count)| *count))
    });
    page.labelled("acpd_sessions", "state", in_state);
    page.value("acpd_turns_running", Some(turns.running));
    page.value("acpd_questions_open", Some(turns.questions));
    page.labelled("acpd_turns_ended_total", "outcome", &turns.ended);
    for (name, value) in [
        ("acpd_prompts_queued", Some(queues.prompts)),
        ("acpd_agent_starts_queued", Some(queues.starts)),
        ("acpd_outbox_lines", Some(queues.outbox_lines)),
        ("acpd_outbox_bytes", Some(queues.outbox_bytes)),
        ("acpd_transactions_pending", Some(queues.transactions)),
        ("acpd_journal_writable", Some(journal.writable.into())),
        ("acpd_journal_events", Some(journal.events)),
        ("acpd_journal_bytes", journal.bytes),
        ("acpd_search_index_bytes", journal.index_bytes),
        ("acpd_sessions_expired_total", Some(journal.expired)),
        ("acpd_journal_removed_bytes_total", Some(journal.removed)),
        ("acpd_journal_given_back_bytes_total", Some(journal.given_back)),
    ] {
        page.value(name, value);
    }
    page.histogram("acpd_turn_duration_seconds", &latencies.turn);
    page.histogram("acpd_turn_first_update_seconds", &latencies.first_update);
    page.histogram("acpd_permission_wait_seconds", &latencies.permission);
    page.histogram("acpd_agent_start_seconds", &latencies.agent_start);
    page.histogram("acpd_commit_seconds", &latencies.commit);
    page.0
}

type AgentFigure = fn(&AgentMetrics) -> Option<u64>;

fn agents(page: &mut Page, agents: &[AgentMetrics]) {
    let in_state = AGENT_STATES
        .split(' ')
        .map(|state| (state, agents.iter().filter(|agent| word(&agent.state) == state).count()));
    page.labelled("acpd_agents", "state", in_state);
    let per_agent: [(&str, AgentFigure); 5] = [
        ("acpd_agent_up", |agent| Some((agent.state == AgentState::Ready).into())),
        ("acpd_agent_restarts_total", |agent| Some(agent.restarts)),
        ("acpd_agent_sessions", |agent| Some(agent.sessions.into())),
        ("acpd_agent_processes", |agent| agent.processes.map(u64::from)),
        ("acpd_agent_resident_memory_bytes", |agent| agent.rss),
    ];
    for (name, value) in per_agent {
        let values = agents.iter().filter_map(|agent| Some((agent.name.raw(), value(agent)?)));
        page.labelled(name, "agent", values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_histograms_are_written_as_the_format_wants_them() {
        let mut page = Page::default();
        page.labelled("acpd_agents", "l", [("x\"\\\ny", 1)]);
        page.labelled("acpd_sessions", "l", [("x", 1); 0]);
        let buckets = vec![acpd_api::Bucket { le: 0.5, count: 1 }];
        let histogram = Histogram { buckets, sum: 7.25, count: 2 };
        page.histogram("acpd_commit_seconds", &histogram);
        insta::assert_snapshot!(page.0, @r#"
        # HELP acpd_agents Agents by state.
        # TYPE acpd_agents gauge
        acpd_agents{l="x\"\\\ny"} 1
        # HELP acpd_commit_seconds How long commits of transactions took.
        # TYPE acpd_commit_seconds histogram
        acpd_commit_seconds_bucket{le="0.5"} 1
        acpd_commit_seconds_bucket{le="+Inf"} 2
        acpd_commit_seconds_sum 7.25
        acpd_commit_seconds_count 2
        "#);
    }
}
