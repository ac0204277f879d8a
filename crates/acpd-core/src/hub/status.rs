//! Status and metrics of the daemon. The relay and the answering connection add the rest.
//!
//! `_acpd/watch`: all rows at once, then changed ones. [`crate::watch`] has the watchers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use acp_wire::build;
use acpd_api::{
    AgentInfo, DaemonInfo, JournalMetrics, Metrics, QueueMetrics, SessionInfo, Status,
    StatusParams, TurnMetrics,
};

use crate::hub::Hub;
use crate::hub::clients::admin::STOPPED;
use crate::hub::facts::{NOT_CONFIGURED, not_configured_hint};
use crate::ids::{Requester, SessionKey, SlotId};
use crate::input::{Effect, StatusPart, ToClient};
use crate::process::slot::Slot;
use crate::record::{Desired, SessionRow};
use crate::session::Session;
use crate::timers::Timer;
use crate::watch::{RowKey, WatchedRow};

impl Hub {
    pub(crate) fn metrics(&self) -> Metrics {
        let facts = &self.cx.config.daemon;
        let mut states = BTreeMap::new();
        for session in self.sessions.values() {
            *states.entry(session.api_state()).or_default() += 1;
        }
        let running = self.sessions.values().filter(|session| session.running.is_some());
        let hosts = self.processes.with_process().filter_map(|slot| slot.host());
        let outboxes: Vec<_> = hosts.map(|host| &host.outbox).collect();
        Metrics {
            version: facts.version.clone(),
            since: facts.since,
            uptime: self.cx.now.0.saturating_sub(facts.since) as f64 / 1e3,
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
                outbox_lines: outboxes.iter().map(|outbox| outbox.len() as u64).sum(),
                outbox_bytes: outboxes.iter().map(|outbox| outbox.bytes as u64).sum(),
                ..QueueMetrics::default()
            },
            journal: JournalMetrics {
                writable: !self.cx.is_failing(),
                events: self.sessions.values().map(|session| session.head).sum(),
                expired: self.tally.expired,
                ..JournalMetrics::default()
            },
            latencies: self.tally.latencies(),
        }
    }

    /// Returns sessions, the last used first.
    pub(crate) fn last_used(
        &self,
        wanted: impl Fn(&SessionRow) -> bool,
    ) -> impl Iterator<Item = (SessionKey, &Session)> {
        let all = self.sessions.iter().filter(|(_, session)| wanted(&session.row));
        let mut all: Vec<_> = all.map(|(key, session)| (*key, &**session)).collect();
        all.sort_by_key(|(_, session)| Reverse(session.row.updated));
        all.into_iter()
    }

    /// Returns the sessions outside of the archive, and the number of those left out.
    fn recent_sessions(&self, recent: Option<u32>) -> (Vec<SessionInfo>, Option<u32>) {
        let mut room = recent.unwrap_or(u32::MAX);
        let all: Vec<_> = self.last_used(|row| !row.archived).collect();
        let shown = all.iter().filter(|(_, session)| {
            let left = room.checked_sub(u32::from(session.is_at_rest()));
            left.map(|left| room = left).is_some()
        });
        let infos: Vec<_> = shown.map(|(key, _)| self.session_info(*key)).collect();
        let omitted = recent.map(|_| (all.len() - infos.len()) as u32);
        (infos, omitted)
    }

    pub(crate) fn send_status(&mut self, to: &Requester, part: StatusPart) {
        let names = match &part {
            StatusPart::Agent(name) => BTreeSet::from([name.clone()]),
            StatusPart::All(_) | StatusPart::Agents => self.agent_names(),
            StatusPart::Metrics(_) => {
                let with_slots = self.processes.values().map(Slot::profile);
                let restarted = self.processes.all_known().filter(|(_, known)| known.restarts > 0);
                let others = self.sessions.agents().chain(restarted.map(|(name, _)| name));
                with_slots.map(str::to_owned).chain(others.cloned()).collect()
            }
        };
        let (params, (sessions, omitted)) = match &part {
            StatusPart::All(params) => (params.clone(), self.recent_sessions(params.recent)),
            _ => (StatusParams::default(), (Vec::new(), None)),
        };
        let mut agents: Vec<_> = names.iter().map(|name| self.agent_info(name)).collect();
        let mut unused = None;
        if params.in_use {
            agents.retain(AgentInfo::is_in_use);
            unused = Some((names.len() - agents.len()) as u32);
        }
        let facts = &self.cx.config.daemon;
        let status = Status {
            daemon: DaemonInfo {
                api: acpd_api::API_VERSION,
                boot: self.cx.ids.boot(),
                clients: self.clients.len() as u32,
                store: self.cx.store.clone(),
                budget: self.budget.info(&self.cx.config, self.cx.now),
                default_agent: self.cx.config.agent_for(params.cwd.as_deref()).into(),
                default_is_found: self.cx.config.is_found_for(params.cwd.as_deref()),
                ..facts.clone()
            },
            agents,
            unused,
            sessions,
            omitted,
            hosts: Vec::new(),
        };
        let status = ToClient::Status { id: to.id.clone(), status: Box::new(status), part };
        self.clients.respond_with(&mut self.cx, to, None, status);
    }

    /// Returns one entry per profile: the state of one slot, the processes of all.
    pub(crate) fn agent_info(&self, name: &str) -> AgentInfo {
        let profile = self.cx.config.profile(name);
        let slots: Vec<&Slot> = self.processes.values().filter(|a| a.profile() == name).collect();
        let up = slots.iter().find(|agent| agent.is_up());
        let shown = up.or_else(|| slots.iter().find(|agent| agent.host().is_some()));
        let shown = shown.or_else(|| slots.first());
        let ids = self.processes.of_profile(name).into_iter();
        let mut ways_out = ids.filter_map(|id| self.processes.way_out(id, &self.cx.config));
        // An agent that acpd only connects to has no process here: its pid is 0.
        let pid = |agent: &&Slot| agent.host()?.pid.filter(|pid| *pid != 0);
        let others = slots.iter().filter(|agent| shown.is_some_and(|s| !std::ptr::eq(*s, **agent)));
        let known = self.processes.known(name);
        let info = known.info.as_ref();
        let begins_in = known.begins_in.clone().filter(|_| profile.defaults.mode.is_none());
        // `agent stop` holds across restarts of the daemon.
        let is_down = known.row.desired == Desired::Down;
        let (reason, hint) = if self.cx.config.agents.contains_key(name) {
            let reason = shown.and_then(|agent| agent.api_reason());
            let reason = reason.or_else(|| is_down.then(|| STOPPED.to_owned()));
            let start = || is_down.then(|| format!("`acpctl agent start {name}` starts it").into());
            (reason, ways_out.next().or_else(start))
        } else {
            (Some(NOT_CONFIGURED.to_owned()), Some(not_configured_hint(name).into()))
        };
        AgentInfo {
            name: name.into(),
            title: profile.title.clone().into(),
            state: shown.map(|agent| agent.api_state()).unwrap_or_default(),
            since: shown.map_or(self.cx.config.daemon.since, |agent| agent.since.0),
            reason: reason.map(Into::into),
            pid: shown.and_then(pid),
            other_pids: others.filter_map(pid).collect(),
            restarts: known.restarts,
            command: profile.command.iter().map(Into::into).collect(),
            version: info.map(|info| format!("{} {}", info.name, info.version).into()),
            protocol: shown
                .filter(|agent| agent.is_up())
                .and_then(|agent| Some(agent.host()?.version)),
            sessions: self.sessions.count_of(name) as u32,
            log: profile.log.clone().into(),
            tried: profile.tried,
            hint,
            mcp: self.mcp_agent(name).infos(known.row.initialize.is_some()),
            auth: self.processes.auth_info(name, &self.cx.config),
            default_mode: begins_in.map(Into::into),
            unsupported: known.lies().into_iter().map(Into::into).collect(),
            ..AgentInfo::default()
        }
    }

    pub(crate) fn answer_agent(&mut self, to: &Requester, slot: SlotId) {
        let profile = self.processes[&slot].profile().to_owned();
        self.send_status(to, StatusPart::Agent(profile));
    }

    pub(crate) fn begin_watch(&mut self, to: &Requester) {
        let is_first = !self.watch.is_on();
        self.watch.begin(to.client);
        if is_first {
            self.sessions.keys().for_each(|key| self.watch.changed(RowKey::Session(*key)));
            let names = self.agent_names().into_iter();
            names.for_each(|name| self.watch.changed(RowKey::Agent(name)));
            self.questions.iter().for_each(|(id, _)| self.watch.changed(RowKey::Question(id)));
        }
        self.note_touched();
        self.note_changes();
        self.rebuild_stale_rows();
        let line = build::response(&to.id, &self.watch.tell_all(to.client));
        self.cx.out.urgent.push(Effect::Client(to.client, ToClient::Rows(line)));
    }

    pub(crate) fn tell_watchers(&mut self) {
        self.note_changes();
        let Some(due) = self.watch.due() else { return };
        if due > self.cx.now {
            if !self.cx.timers.is_set(Timer::Watch) {
                self.cx.timers.set(Timer::Watch, due);
            }
            return;
        }
        self.rebuild_stale_rows();
        for (client, line) in self.watch.tell(self.cx.now) {
            self.cx.send(Effect::Client(client, ToClient::Rows(line)));
        }
    }

    /// Marks sessions that may have changed, or whose clients have.
    pub(crate) fn note_touched(&mut self) {
        self.sessions.touch(self.clients.take_touched());
        self.sessions.touched().for_each(|key| self.watch.changed(RowKey::Session(key)));
    }

    /// Marks changed agents. Sessions are marked at the end of the batch.
    fn note_changes(&mut self) {
        if self.watch.is_on() {
            for name in self.processes.take_changed() {
                self.watch.changed(RowKey::Agent(name));
            }
        }
    }

    fn rebuild_stale_rows(&mut self) {
        let mut stale = self.watch.take_stale();
        let names = self.agent_names();
        while let Some(key) = stale.pop_first() {
            let now = match &key {
                RowKey::Session(key) => {
                    let here = self.sessions.get(key).filter(|session| !session.row.archived);
                    let now = here.map(|_| self.session_info(*key));
                    let old = self.watch.session(*key);
                    // An agent's row counts its sessions, and a question names its session.
                    if now.is_some() != old.is_some() {
                        let of = now.as_ref().or(old).map(|info| info.agent.raw().to_owned());
                        stale.extend(of.map(RowKey::Agent));
                    }
                    let place =
                        |info: &acpd_api::SessionInfo| (info.name.clone(), info.cwd.clone());
                    if now.as_ref().map(place) != old.map(place) {
                        let questions = self.questions.of_session(*key);
                        stale.extend(questions.into_iter().map(RowKey::Question));
                    }
                    now.map(|info| WatchedRow::Session(Box::new(info)))
                }
                RowKey::Agent(name) => {
                    names.contains(name).then(|| WatchedRow::Agent(Box::new(self.agent_info(name))))
                }
                RowKey::Question(id) => {
                    self.question_info(*id).map(|info| WatchedRow::Question(Box::new(info)))
                }
            };
            self.watch.put(key, now);
        }
        self.watch.seal();
    }
}
