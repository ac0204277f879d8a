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

/// Returns the metrics page. Labels contain no newlines, and other control characters are shown by
/// number.
pub(crate) fn text(metrics: &Metrics) -> Text {
    text!("{}", Untrusted::from(page(metrics)).prose())
}

/// Name, kind and description.
type Family<'a> = (&'a str, &'a str, &'a str);

type ValueOf = fn(&AgentMetrics) -> Option<u64>;

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, (name, kind, help): Family<'_>) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, label: Option<(&str, &str)>, value: impl Display) {
        let _ = match label {
            Some((label, text)) => {
                writeln!(self.0, "{name}{{{label}=\"{}\"}} {value}", escaped(text))
            }
            None => writeln!(self.0, "{name} {value}"),
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family((name, "gauge", help));
        self.sample(name, None, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family((name, "counter", help));
        self.sample(name, None, value);
    }

    /// Adds one value per label; a family without values is omitted.
    fn labelled<V: Display>(
        &mut self,
        family: Family<'_>,
        label: &str,
        values: impl IntoIterator<Item = (impl AsRef<str>, V)>,
    ) {
        for (at, (text, value)) in values.into_iter().enumerate() {
            if at == 0 {
                self.family(family);
            }
            self.sample(family.0, Some((label, text.as_ref())), value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family((name, "histogram", help));
        let bucket = format!("{name}_bucket");
        for of in &histogram.buckets {
            self.sample(&bucket, Some(("le", &of.le.to_string())), of.count);
        }
        self.sample(&bucket, Some(("le", "+Inf")), histogram.count);
        self.sample(&format!("{name}_sum"), None, histogram.sum);
        self.sample(&format!("{name}_count"), None, histogram.count);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn page(metrics: &Metrics) -> String {
    let mut page = Page::default();
    let info = ("acpd_build_info", "gauge", "The version of the daemon; the value is always 1.");
    page.labelled(info, "version", [(metrics.version.raw(), 1)]);
    let since = metrics.since as f64 / 1e3;
    page.gauge("acpd_start_time_seconds", "When the daemon started, since the epoch.", since);
    page.gauge("acpd_uptime_seconds", "For how long the daemon runs.", metrics.uptime);
    if let Some(rss) = metrics.rss {
        page.gauge("acpd_resident_memory_bytes", "Resident memory of the daemon.", rss);
    }
    page.gauge("acpd_clients", "Connected clients, with the one that asks.", metrics.clients);
    agents(&mut page, &metrics.agents);
    let in_state = SESSION_STATES.split(' ').map(|state| {
        let count = metrics.sessions.iter().find(|(of, _)| word(of) == state);
        (state, count.map_or(0, |(_, count)| *count))
    });
    page.labelled(("acpd_sessions", "gauge", "Sessions by state."), "state", in_state);
    page.gauge("acpd_turns_running", "Turns that run.", metrics.turns.running);
    page.gauge("acpd_questions_open", "Questions that wait for a person.", metrics.turns.questions);
    let ended = ("acpd_turns_ended_total", "counter", "Turns that have ended, by how.");
    page.labelled(ended, "outcome", &metrics.turns.ended);
    let queues = &metrics.queues;
    page.gauge("acpd_prompts_queued", "Prompts that wait for their turn.", queues.prompts);
    page.gauge(
        "acpd_agent_starts_queued",
        "Agents that wait until others have started.",
        queues.starts,
    );
    page.gauge("acpd_outbox_lines", "Lines that agents have not taken yet.", queues.outbox_lines);
    page.gauge("acpd_outbox_bytes", "Size of those lines.", queues.outbox_bytes);
    page.gauge(
        "acpd_transactions_pending",
        "Transactions that are not committed yet.",
        queues.transactions,
    );
    let journal = &metrics.journal;
    page.gauge(
        "acpd_journal_writable",
        "1 if the journal can be written, 0 if not.",
        u8::from(journal.writable),
    );
    page.gauge("acpd_journal_events", "Lines in the journals of all sessions.", journal.events);
    if let Some(bytes) = journal.bytes {
        page.gauge("acpd_journal_bytes", "Size of the database, with its log.", bytes);
    }
    if let Some(bytes) = journal.index_bytes {
        page.gauge("acpd_search_index_bytes", "Size of the search index, with its log.", bytes);
    }
    page.counter(
        "acpd_sessions_expired_total",
        "Sessions that limits of the configuration have let go.",
        journal.expired,
    );
    page.counter(
        "acpd_journal_removed_bytes_total",
        "Lines of deleted sessions that were removed.",
        journal.removed,
    );
    page.counter(
        "acpd_journal_given_back_bytes_total",
        "By how much the database has become shorter.",
        journal.given_back,
    );
    let took = &metrics.latencies;
    page.histogram("acpd_turn_duration_seconds", "How long turns took.", &took.turn);
    page.histogram(
        "acpd_turn_first_update_seconds",
        "Until the agent said or asked something in a turn.",
        &took.first_update,
    );
    page.histogram(
        "acpd_permission_wait_seconds",
        "How long permission questions were open.",
        &took.permission,
    );
    page.histogram(
        "acpd_agent_start_seconds",
        "How long starts of agents took.",
        &took.agent_start,
    );
    page.histogram("acpd_commit_seconds", "How long commits of transactions took.", &took.commit);
    page.0
}

fn agents(page: &mut Page, agents: &[AgentMetrics]) {
    let in_state = AGENT_STATES
        .split(' ')
        .map(|state| (state, agents.iter().filter(|agent| word(&agent.state) == state).count()));
    page.labelled(("acpd_agents", "gauge", "Agents by state."), "state", in_state);
    let mut per_agent = |family: Family<'_>, value: ValueOf| {
        let values = agents.iter().filter_map(|agent| Some((agent.name.raw(), value(agent)?)));
        page.labelled(family, "agent", values);
    };
    per_agent(("acpd_agent_up", "gauge", "1 if the agent can be used, 0 if not."), |agent| {
        Some((agent.state == AgentState::Ready).into())
    });
    let restarts = "Restarts after unexpected exits of the agent.";
    per_agent(("acpd_agent_restarts_total", "counter", restarts), |agent| Some(agent.restarts));
    per_agent(("acpd_agent_sessions", "gauge", "Sessions of the agent."), |agent| {
        Some(agent.sessions.into())
    });
    per_agent(("acpd_agent_processes", "gauge", "Processes of the agent."), |agent| {
        agent.processes.map(u64::from)
    });
    let memory = "Resident memory of those processes.";
    per_agent(("acpd_agent_resident_memory_bytes", "gauge", memory), |agent| agent.rss);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_histograms_are_written_as_the_format_wants_them() {
        let mut page = Page::default();
        page.labelled(("a", "gauge", "b\\c\nd"), "l", [("x\"\\\ny", 1)]);
        page.labelled(("none", "gauge", ""), "l", [("x", 1); 0]);
        let buckets = vec![acpd_api::Bucket { le: 0.5, count: 1 }];
        page.histogram("t", "u", &Histogram { buckets, sum: 7.25, count: 2 });
        insta::assert_snapshot!(page.0, @r#"
        # HELP a b\\c\nd
        # TYPE a gauge
        a{l="x\"\\\ny"} 1
        # HELP t u
        # TYPE t histogram
        t_bucket{le="0.5"} 1
        t_bucket{le="+Inf"} 2
        t_sum 7.25
        t_count 2
        "#);
    }
}
