//! The `_acpd/*` methods: what people and scripts ask about agents and sessions.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::bound::NAME;
use acp_wire::{build, clipped};
use acpd_api::{
    AgentInfo, AgentRef, AttachParams, AttachResult, CancelParams, CancelResult, DaemonInfo,
    DaemonRestartParams, DaemonStopParams, Empty, LogLevelParams, LogParams, Reason, RenameParams,
    RestartParams, SearchParams, SessionInfo, SessionList, SessionListParams, SessionRef, Status,
    StatusParams, UsageParams, method, nearest,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::cx::Cx;
use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::hub::session::naming::NameClash;
use crate::ids::{Requester, SessionKey, SlotId};
use crate::input::{Batch, Effect, LogPage, ReadStyle, Search, StatusPart, ToClient};
use crate::params::{read, valid_name};
use crate::process::slot::{Asker, Slot, StopWhy};
use crate::record::{Desired, Dormant};
use crate::requests::purpose::Purpose;
use crate::session::turn::Cancel;
use crate::session::{State, numbered};

/// Journal entries in one answer when the caller names no number.
const LOG_PAGE: u32 = 1_000;

/// Hits in one answer when the caller names no number, and in any case.
const SEARCH_HITS: u32 = 20;

const MOST_SEARCH_HITS: u32 = 1_000;

/// Why an agent is down that a person has stopped.
const STOPPED: &str = "stopped by a person";

/// Why an agent does not run that has sessions and no configuration.
const TAKEN_OUT: &str = "not configured any more";

/// Advice about an agent that was taken out.
fn taken_out(name: &str) -> String {
    format!(
        "configure `[agents.{name}]` again, without `enabled = false`, or let another agent go on: \
         `acpctl session handoff SESSION --to AGENT`"
    )
}

const SEARCH_WORDS: usize = 64;

impl Hub {
    pub(crate) fn manage(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, method: name, params, .. } = asked;
        match name {
            method::PING => self.answer(to, &Empty {}, out),
            method::WATCH => self.begin_watch(to, out),
            method::STATUS => {
                let StatusParams { cwd } = read_or_default(params)?;
                self.send_status(to, StatusPart::All, cwd.as_deref(), out);
            }
            method::AGENT_LIST => self.send_status(to, StatusPart::Agents, None, out),
            method::AGENT_SHOW => {
                let agent = self.agent_ref(params)?;
                self.send_status(to, StatusPart::Agent(agent), None, out);
            }
            method::AGENT_START => self.agent_start(asked, out)?,
            method::AGENT_STOP => self.agent_stop(asked, out)?,
            method::AGENT_RESTART => self.agent_restart(asked, out)?,
            method::AUTH_DONE => self.auth_done(asked, out)?,
            method::SESSION_LIST => {
                let filter: SessionListParams = read_or_default(params)?;
                let sessions = self.session_infos(|row| {
                    filter.agent.as_ref().is_none_or(|agent| row.agent == *agent)
                        && filter.archived.unwrap_or_default().takes(row.archived)
                        && filter.cwd.as_ref().is_none_or(|cwd| row.cwd == *cwd)
                });
                self.answer(to, &SessionList { sessions }, out);
            }
            method::SESSION_SHOW => {
                let key = self.resolve(&read(params)?)?;
                let info = self.session_info(key);
                self.answer(to, &info, out);
            }
            method::SESSION_LOG => self.session_log(asked, out)?,
            method::SESSION_SEARCH => self.session_search(asked, out)?,
            method::SESSION_ATTACH => self.session_attach(asked, out)?,
            method::SESSION_DETACH => {
                let key = self.resolve(&read(params)?)?;
                self.detach(to.client, key, out);
                self.answer(to, &Empty {}, out);
                self.check_idle(self.session(key).slot, out);
            }
            method::SESSION_RENAME => self.session_rename(asked, out)?,
            method::SESSION_TITLE => self.session_title(asked, out)?,
            method::SESSION_MOVE => self.session_move(asked, out)?,
            method::SESSION_RESEED => self.session_reseed(asked, out)?,
            method::SESSION_ARCHIVE => self.session_archive(asked, true, out)?,
            method::SESSION_UNARCHIVE => self.session_archive(asked, false, out)?,
            method::SESSION_QUEUE => self.session_queue(asked, out)?,
            method::SESSION_QUEUE_EDIT => self.queue_edit(asked, out)?,
            method::SESSION_QUEUE_MOVE => self.queue_move(asked, out)?,
            method::SESSION_QUEUE_REMOVE => self.queue_remove(asked, out)?,
            method::SESSION_CANCEL => self.session_cancel(asked, out)?,
            method::SESSION_CLOSE => {
                let key = self.resolve(&read(params)?)?;
                self.close_session(key, out);
                let info = self.session_info(key);
                self.answer(to, &info, out);
                self.forget_unless_kept(key, out);
            }
            method::SESSION_REMOVE => self.session_remove(asked, out)?,
            method::SESSION_UNDO => self.session_undo(asked, out)?,
            method::GC => self.collect(to, read_or_default(params)?, out)?,
            method::USAGE => {
                let asked: UsageParams = read_or_default(params)?;
                self.close_request(to);
                let usage = ToClient::Usage { id: to.id.clone(), asked };
                out.effects.push(Effect::Client(to.client, usage));
            }
            method::DAEMON_LOG_LEVEL => {
                let LogLevelParams { level } = read_or_default(params)?;
                self.close_request(to);
                let effect = ToClient::LogLevel { id: to.id.clone(), level };
                out.effects.push(Effect::Client(to.client, effect));
            }
            method::METRICS => self.send_metrics(to, out),
            method::TRACE => self.begin_trace(asked, out)?,
            method::INTERACTION_LIST => self.list_questions(to, out),
            method::INTERACTION_ANSWER => self.answer_question(asked, out)?,
            method::MCP_LIST => self.list_lent_servers(to, &read(params)?, out)?,
            method::MCP_CALL => self.call_lent_server(asked, out)?,
            method::POLICY_LIST => {
                let list = self.questions.decisions().info();
                self.answer(to, &list, out);
            }
            method::POLICY_FORGET => self.forget_decision(asked, out)?,
            method::POLICY_TEST => self.test_policy(asked, out)?,
            method::DAEMON_RESTART => {
                self.check_stays()?;
                let DaemonRestartParams { environment } = read_or_default(params)?;
                // A tool of an agent must not choose what other agents inherit.
                let may_bring = self.may_decide(to.client);
                let brought = Some(environment).filter(|_| may_bring).unwrap_or_default();
                self.leave(to, Some(brought), out);
            }
            method::DAEMON_STOP if read_or_default::<DaemonStopParams>(params)?.detach => {
                self.leave(to, None, out);
            }
            method::DAEMON_STOP => {
                self.shutdown.watch(to.clone());
                self.begin_shutdown(out);
            }
            _ => {
                return Err(Fault::invalid(format!("acpd has no method `{name}`"))
                    .with_code(acp_wire::code::METHOD_NOT_FOUND));
            }
        }
        Ok(())
    }

    fn agent_ref(&self, params: Option<&RawValue>) -> Result<String, Fault> {
        let AgentRef { agent } = read(params)?;
        if self.config.agents.contains_key(&agent) {
            return Ok(agent);
        }
        Err(self.unknown_agent(&agent))
    }

    /// The error for an agent that is not configured, with the nearest name.
    pub(crate) fn unknown_agent(&self, name: &str) -> Fault {
        if self.is_agent(name) {
            let text = format!("agent `{}` is not configured any more", clipped(name, NAME));
            return Fault::new(Reason::AgentUnknown, text)
                .with_code(acp_wire::code::INVALID_PARAMS)
                .hint(taken_out(name));
        }
        let text = format!("no agent `{}`", clipped(name, NAME));
        let fault =
            Fault::new(Reason::AgentUnknown, text).with_code(acp_wire::code::INVALID_PARAMS);
        match nearest(name, self.config.agents.keys().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint("`acpctl agent ls` lists the agents"),
        }
    }

    /// The session that a person means.
    pub(crate) fn resolve(&self, wanted: &SessionRef) -> Result<SessionKey, Fault> {
        let text = wanted.session.as_str();
        if let Some(number) = wanted.number {
            return self.sessions.by_number(number);
        }
        let of_agent = |key: &SessionKey| {
            wanted.agent.as_ref().is_none_or(|agent| self.session(*key).row.agent == *agent)
        };
        let find = |test: &dyn Fn(&crate::record::SessionRow) -> bool| -> Vec<SessionKey> {
            let all = self.sessions.iter().filter(|(_, session)| test(&session.row));
            all.map(|(key, _)| *key).filter(of_agent).collect()
        };
        let here = |row: &crate::record::SessionRow| wanted.cwd.as_deref() == Some(&row.cwd);
        let named = |row: &crate::record::SessionRow| row.name.as_deref() == Some(text);
        // Where acpd has numbered an id, what comes before the number is the id of another session,
        // also when that is gone.
        let others = |row: &crate::record::SessionRow| row.public_id == numbered(text, row.key);
        let mut rounds = vec![find(&|row| named(row) && here(row))];
        if !wanted.exact_name {
            rounds.push(find(&|row| named(row) || row.public_id == text));
            rounds.push(find(&|row| {
                let name = row.name.as_deref().unwrap_or_default();
                let by_id = row.public_id.starts_with(text) && !others(row);
                !text.is_empty() && (name.starts_with(text) || by_id)
            }));
        }
        for found in rounds {
            match found.as_slice() {
                [] => {}
                [key] => return Ok(*key),
                several => return Err(self.sessions.ambiguous(text, several)),
            }
        }
        match &wanted.agent {
            Some(agent) if !self.is_agent(agent) => Err(self.unknown_agent(agent)),
            _ => Err(Fault::no_session(text)),
        }
    }

    /// Returns whether an agent of this name is configured, or has sessions.
    pub(crate) fn is_agent(&self, name: &str) -> bool {
        self.config.agents.contains_key(name)
            || self.sessions.values().any(|session| session.row.agent == name)
    }

    fn session_infos(
        &self,
        wanted: impl Fn(&crate::record::SessionRow) -> bool,
    ) -> Vec<SessionInfo> {
        let wanted = self.sessions.iter().filter(|(_, session)| wanted(&session.row));
        let mut infos: Vec<_> = wanted.map(|(key, _)| self.session_info(*key)).collect();
        infos.sort_by_key(|info| std::cmp::Reverse(info.updated));
        infos
    }

    /// All configured agents, and those that have sessions.
    pub(crate) fn agent_names(&self) -> BTreeSet<String> {
        let with_sessions = self.sessions.agents();
        self.config.agents.keys().chain(with_sessions).cloned().collect()
    }

    /// One entry per profile. Of slots of single sessions it shows the state of one, and the processes of all.
    pub(crate) fn agent_info(&self, name: &str) -> AgentInfo {
        let profile = self.config.profile(name);
        let slots: Vec<&Slot> = self.processes.values().filter(|a| a.profile() == name).collect();
        let up = slots.iter().find(|agent| agent.is_up());
        let shown = up.or_else(|| slots.iter().find(|agent| agent.host().is_some()));
        let shown = shown.or_else(|| slots.first());
        let waits = self
            .processes
            .of_profile(name)
            .into_iter()
            .find(|id| self.processes.way_out(*id, &self.config).is_some());
        // An agent that is only connected to is no process of this machine.
        let pid = |agent: &&Slot| agent.host()?.pid.filter(|pid| *pid != 0);
        let others = slots.iter().filter(|agent| shown.is_some_and(|s| !std::ptr::eq(*s, **agent)));
        let known = self.processes.known(name);
        let info = known.info.as_ref();
        // The agent stays down across restarts of the daemon.
        let is_down = known.row.desired == Desired::Down;
        let (reason, hint) = if self.config.agents.contains_key(name) {
            let reason = shown.and_then(|agent| agent.api_reason());
            let reason = reason.or_else(|| is_down.then(|| STOPPED.to_owned()));
            let hint = waits.and_then(|id| self.processes.way_out(id, &self.config));
            let start = || is_down.then(|| format!("`acpctl agent start {name}` starts it"));
            (reason, hint.or_else(start))
        } else {
            (Some(TAKEN_OUT.to_owned()), Some(taken_out(name)))
        };
        AgentInfo {
            name: name.into(),
            title: profile.title.clone().into(),
            state: shown.map_or(acpd_api::AgentState::Stopped, |agent| agent.api_state()),
            since: shown.map_or(self.config.daemon.since, |agent| agent.since().0),
            reason: reason.map(Into::into),
            pid: shown.and_then(pid),
            other_pids: others.filter_map(pid).collect(),
            rss: None,
            processes: None,
            restarts: self.tally.restarts_of(name),
            command: profile.command.iter().map(Into::into).collect(),
            version: info.map(|info| format!("{} {}", info.name, info.version).into()),
            sessions: self.sessions.count_of(name) as u32,
            log: profile.log.clone().into(),
            tried: profile.tried,
            hint: hint.map(Into::into),
            mcp: self.mcp_agent(name).infos(known.row.initialize.is_some()),
            auth: self.processes.auth_info(name, &self.config),
            installed: None,
            install: None,
            packages: Vec::new(),
            address: None,
            not_found: None,
            default_mode: known
                .begins_in
                .clone()
                .filter(|_| profile.defaults.mode.is_none())
                .map(Into::into),
            unsupported: known.lies().into_iter().map(Into::into).collect(),
            inherits: Vec::new(),
            inherited: Vec::new(),
            lacks: Vec::new(),
            environment: Vec::new(),
            login_shell: None,
            shims: Vec::new(),
        }
    }

    pub(crate) fn send_status(
        &mut self,
        to: &Requester,
        part: StatusPart,
        dir: Option<&str>,
        out: &mut Batch,
    ) {
        let names = match &part {
            StatusPart::Agent(name) => BTreeSet::from([name.clone()]),
            StatusPart::All | StatusPart::Agents => self.agent_names(),
            StatusPart::Metrics(_) => self.counted_agents(),
        };
        let sessions = if part == StatusPart::All {
            self.session_infos(|row| !row.archived)
        } else {
            Vec::new()
        };
        let facts = &self.config.daemon;
        let status = Status {
            daemon: DaemonInfo {
                version: facts.version.clone().into(),
                api: acpd_api::API_VERSION,
                pid: facts.pid,
                boot: self.ids.boot(),
                since: facts.since,
                rss: None,
                clients: self.clients.len() as u32,
                store: self.store_health.state(),
                budget: self.budget_info(),
                default_agent: self.config.agent_for(dir).into(),
                default_is_found: self.config.is_found_for(dir),
                socket: facts.socket.clone().into(),
                database: facts.database.clone().into(),
                log: facts.log.clone().into(),
                config: facts.config.clone().into(),
                config_changed: None,
            },
            agents: names.iter().map(|name| self.agent_info(name)).collect(),
            sessions,
        };
        if !self.close_request(to) {
            return;
        }
        let (client, id, status) = (to.client, to.id.clone(), Box::new(status));
        self.send_answer(
            Effect::Client(client, ToClient::Status { id, status, part }),
            client,
            out,
        );
    }

    pub(crate) fn answer_agent(&mut self, to: &Requester, slot: SlotId, out: &mut Batch) {
        let profile = self.processes[&slot].profile().to_owned();
        self.send_status(to, StatusPart::Agent(profile), None, out);
    }

    fn agent_start(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&agent, Desired::Up, out);
        let slot = self.processes.shared(&agent, self.now);
        self.need_agent(slot, Asker::Person, out)?;
        self.check_idle(slot, out);
        if self.processes[&slot].is_up() {
            self.answer_agent(to, slot, out);
        } else {
            self.processes.watch(slot, to.clone());
        }
        Ok(())
    }

    fn agent_stop(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        self.processes.set_desired(&agent, Desired::Down, out);
        let shared = self.processes.shared(&agent, self.now);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                self.take_back_steers(key, out);
            }
            self.begin_stop(slot, StopWhy::ByPerson, Some(STOPPED.to_owned()), out);
            if self.processes[&slot].host().is_none() {
                step!(self.processes.give_up(slot, Reason::AgentStopped), out);
            }
        }
        if self.processes[&shared].host().is_some() {
            self.processes.may_start(shared)?;
            self.processes.watch(shared, to.clone());
        } else {
            self.answer_agent(to, shared, out);
        }
        Ok(())
    }

    fn agent_restart(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        let RestartParams { force, .. } = read(params)?;
        for slot in self.processes.of_profile(&agent).into_iter().filter(|_| !force) {
            if self.processes[&slot].leftovers().is_some() {
                self.processes.may_start(slot)?;
            }
        }
        if self.processes.known(&agent).row.desired == Desired::Down {
            self.processes.set_desired(&agent, Desired::OnDemand, out);
        }
        let shared = self.processes.shared(&agent, self.now);
        // The user wants another try, and the agent may have the session again.
        self.processes.forget_lies(&agent, out);
        for slot in self.processes.of_profile(&agent) {
            for key in self.sessions.of_slot(slot) {
                if self.session(key).row.rest == Dormant::Lost {
                    self.session_mut(key).row.edit().rest = Dormant::Failed;
                }
            }
            self.unblock_for_next(slot, out);
            if step!(self.processes.leave_behind(slot), out) {
                // Slots of single sessions go with them.
                if !self.processes.contains_key(&slot) {
                    continue;
                }
            } else {
                let reason = Some("restarted by a person".to_owned());
                self.begin_stop(slot, StopWhy::Restart, reason, out);
            }
            // A session without a process stays where it would not return by itself.
            if slot != shared
                && self.processes[&slot].host().is_none()
                && self.processes.is_wanted(slot, self.demand(slot))
            {
                self.need_agent(slot, Asker::Person, out)?;
            }
        }
        if self.processes[&shared].host().is_none() {
            self.need_agent(shared, Asker::Person, out)?;
        }
        self.processes.watch(shared, to.clone());
        Ok(())
    }

    fn session_log(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let params: LogParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let session = self.session(key);
        let effect = Effect::Client(
            to.client,
            ToClient::Log(LogPage {
                id: to.id.clone(),
                session: key,
                session_id: session.row.public_id.clone(),
                after: params.after,
                upto: session.head,
                limit: params.limit.unwrap_or(LOG_PAGE),
            }),
        );
        self.close_request(to);
        out.effects.push(effect);
        Ok(())
    }

    fn session_search(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let SearchParams { words, agent, cwd, limit } = read(params)?;
        if words.iter().all(|word| word.trim().is_empty()) {
            return Err(Fault::invalid("there are no words to look for"));
        }
        if words.len() > SEARCH_WORDS {
            return Err(Fault::invalid(format!("more than {SEARCH_WORDS} words to look for")));
        }
        let all = self.sessions.iter();
        let sessions: BTreeMap<_, _> = all
            .filter(|(_, session)| {
                agent.as_ref().is_none_or(|agent| session.row.agent == *agent)
                    && cwd.as_ref().is_none_or(|cwd| session.row.cwd == *cwd)
            })
            .filter(|(key, _)| self.keeps_history(**key))
            .map(|(key, _)| (*key, self.session_info(*key)))
            .collect();
        // Nothing in the sessions of an agent that does not exist is a mistake.
        if let Some(agent) = agent.filter(|agent| !self.config.agents.contains_key(agent))
            && !self.sessions.values().any(|session| session.row.agent == agent)
        {
            return Err(self.unknown_agent(&agent));
        }
        let limit = limit.unwrap_or(SEARCH_HITS).min(MOST_SEARCH_HITS);
        let search = Box::new(Search { words, sessions, limit });
        let effect = Effect::Client(to.client, ToClient::Search { id: to.id.clone(), search });
        self.close_request(to);
        out.effects.push(effect);
        Ok(())
    }

    fn session_attach(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let params: AttachParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let result = AttachResult { session: self.session_info(key) };
        self.answer(to, &result, out);
        self.attach(to.client, key, params.role, params.after, ReadStyle::Resume, out);
        if params.role == acpd_api::Role::Controller {
            self.warm_up(key, out);
        }
        Ok(())
    }

    fn session_rename(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let params: RenameParams = read(params)?;
        let key = self.resolve(&params.session)?;
        if let Some(name) = &params.name {
            valid_name(name)?;
            let row = &self.session(key).row;
            if let Some(clash) = self.name_clash(&row.agent, &row.cwd, name, Some(key)) {
                let hint = match clash {
                    // For each command, only `--agent` would tell the two apart.
                    NameClash::OtherAgent(agent) => {
                        format!("it is a session of {agent}; choose another name")
                    }
                    NameClash::Session(_) | NameClash::BeingMade => {
                        "choose another name".to_owned()
                    }
                };
                return Err(name_taken(name, &row.cwd).hint(hint));
            }
        }
        self.session_mut(key).row.edit().name = params.name;
        let info = self.session_info(key);
        self.answer(to, &info, out);
        Ok(())
    }

    fn session_cancel(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let CancelParams { session: wanted, turn_only, by } = read(params)?;
        let key = self.resolve(&wanted)?;
        let session = self.session(key);
        let (running, waiting) = (session.running.is_some(), session.queue.len() as u32);
        let taken_back = if turn_only { 0 } else { waiting };
        let prompts = if turn_only { Vec::new() } else { self.sessions.queue_info(key).prompts };
        if !running && taken_back == 0 {
            let text = format!("no turn runs in session `{}`", session.row.handle());
            let fault = Fault::new(Reason::NoTurn, text).with_code(acp_wire::code::INVALID_REQUEST);
            return Err(fault.session(&session.row.public_id));
        }
        let by = self.clients.name_of(to.client, by);
        if turn_only {
            self.cancel_running(key, Cancel::by(by), None, out);
        } else {
            self.cancel(key, by, None, out);
        }
        let session = self.session_info(key);
        self.answer(to, &CancelResult { session, running, taken_back, prompts }, out);
        Ok(())
    }

    /// Frees the agent's copy of a session; it stays listed and comes back with the next prompt.
    pub(crate) fn close_session(&mut self, key: SessionKey, out: &mut Batch) {
        let live = matches!(self.session(key).state, State::Live);
        let restoring = matches!(self.session(key).state, State::Restoring(_));
        let closed = Fault::new(Reason::SessionBlocked, "the session was closed");
        self.take_back_steers(key, out);
        self.cancel_running(key, Cancel::because("the session was closed"), None, out);
        self.abandon_turn(key, &closed, out);
        self.give_up_restore(key, out);
        self.cancel_questions(self.questions.of_session(key), out);
        self.fail_queue(key, &closed, out);
        if live {
            self.farewell(key, "session/close", out);
        }
        if live || restoring || self.session(key).row.rest == Dormant::Parked {
            self.timers.clear(crate::timers::Timer::Restore(key));
            self.make_dormant(key, Dormant::Closed, Some("closed".to_owned()), out);
        }
        self.check_idle(self.session(key).slot, out);
    }

    /// Deletes a session, also the agent's copy if the process that holds it can.
    pub(crate) fn delete_session(&mut self, key: SessionKey, out: &mut Batch) {
        let can_delete = self.processes.known(&self.session(key).row.agent).capabilities.delete;
        let farewell = if can_delete { "session/delete" } else { "session/close" };
        self.forget_session(key, farewell, out);
    }

    /// Tells the agent that a session is over, if it wants to know.
    pub(crate) fn farewell(&mut self, key: SessionKey, name: &str, out: &mut Batch) {
        let session = self.session(key);
        let (slot, id) = (session.slot, session.row.agent_id.clone());
        let capabilities = &self.processes.known(&session.row.agent).capabilities;
        let offered =
            if name == "session/delete" { capabilities.delete } else { capabilities.close };
        let Some(host) = self.processes[&slot].usable_host().filter(|_| offered) else { return };
        let ask = self.ask(host, Purpose::Farewell, out);
        let line = build::request(&acp_wire::Id::issued(ask), name, &json!({ "sessionId": id }));
        self.processes.write(slot, line, out);
    }
}

fn read_or_default<T: DeserializeOwned + Default>(params: Option<&RawValue>) -> Result<T, Fault> {
    match params {
        None => Ok(T::default()),
        Some(_) => read(params),
    }
}
