//! The `_acpd/*` methods.

use acpd_api::{
    AuthSource, DaemonRestartParams, DaemonStopParams, Empty, ForgetParams, LogLevelParams, Reason,
    RestartParams, SessionList, SessionListParams, TitleParams, UsageParams, method,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::input::{StatusPart, ToClient};
use crate::params::read;
use crate::process::slot::{Asker, State, StopWhy};
use crate::record::{Desired, Dormant, SessionRow};
use crate::session::title::one_line;

pub(crate) const STOPPED: &str = "stopped by a person";

impl Hub {
    pub(crate) fn manage(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, method: name, params, .. } = asked;
        match name {
            method::PING => self.answer(to, &Empty {}),
            method::WATCH => {
                if self.clients.close_request(to) {
                    self.begin_watch(to);
                }
            }
            method::STATUS => {
                self.send_status(to, StatusPart::All(read_or_default(params)?));
            }
            method::AGENT_LIST => self.send_status(to, StatusPart::Agents),
            method::AGENT_SHOW => {
                let agent = self.agent_ref(params)?;
                self.send_status(to, StatusPart::Agent(agent));
            }
            method::AGENT_START
            | method::AGENT_STOP
            | method::AGENT_RESTART
            | method::AUTH_DONE => self.agent_command(asked)?,
            method::SESSION_LIST => {
                let filter: SessionListParams = read_or_default(params)?;
                let wanted = |row: &SessionRow| {
                    filter.agent.as_ref().is_none_or(|agent| row.agent == *agent)
                        && filter.archived.unwrap_or_default().takes(row.archived)
                        && filter.cwd.as_ref().is_none_or(|cwd| row.cwd == *cwd)
                        && filter.labels.iter().all(|label| row.labels.contains(label))
                        && filter.begins.as_ref().is_none_or(|text| row.begins(text))
                        && (row.prompts > 0 || !filter.used)
                };
                let some = self.last_used(wanted).take(filter.limit.unwrap_or(u32::MAX) as usize);
                let sessions = some.map(|(key, _)| self.session_info(key)).collect();
                self.answer(to, &SessionList { sessions });
            }
            method::SESSION_SHOW => self.serve(asked, |hub, session| {
                let key = hub.resolve(&session)?;
                Ok(hub.session_info(key))
            })?,
            method::SESSION_LOG => self.session_log(asked)?,
            method::SESSION_SEARCH => self.session_search(asked)?,
            method::SESSION_ATTACH => self.session_attach(asked)?,
            method::SESSION_DETACH => {
                let key = self.resolve(&read(params)?)?;
                self.detach(to.client, key);
                self.answer(to, &Empty {});
                self.check_idle(self.session(key).slot);
            }
            method::SESSION_RENAME => self.serve(asked, Hub::session_rename)?,
            method::SESSION_LABEL => self.serve(asked, Hub::session_label)?,
            method::SESSION_TITLE => {
                self.serve(asked, |hub, TitleParams { session, title }| {
                    let key = hub.resolve(&session)?;
                    let title = title.as_deref().map(one_line).transpose()?;
                    hub.give_title(key, title, to.client);
                    Ok(hub.session_info(key))
                })?;
            }
            method::SESSION_MOVE => self.serve(asked, Hub::session_move)?,
            method::SESSION_RESEED => self.serve(asked, Hub::session_reseed)?,
            method::SESSION_ARCHIVE | method::SESSION_UNARCHIVE => {
                self.serve(asked, |hub, session| {
                    let key = hub.resolve(&session)?;
                    if name == method::SESSION_ARCHIVE {
                        hub.archive_for(None, key)?;
                    } else {
                        hub.set_archived(key, false);
                    }
                    Ok(hub.session_info(key))
                })?;
            }
            method::SESSION_QUEUE => self.serve(asked, |hub, session| {
                let key = hub.resolve(&session)?;
                Ok(hub.session(key).queue_info())
            })?,
            method::SESSION_QUEUE_EDIT => {
                self.serve(asked, |hub, edit| hub.queue_edit(edit, &asked))?;
            }
            method::SESSION_QUEUE_MOVE => self.serve(asked, Hub::queue_move)?,
            method::SESSION_QUEUE_REMOVE => self.serve(asked, Hub::queue_remove)?,
            method::SESSION_CANCEL => {
                self.serve(asked, |hub, cancel| hub.session_cancel(cancel, to.client))?;
            }
            method::SESSION_CLOSE => {
                let key = self.resolve(&read(params)?)?;
                self.close_session(key);
                let info = self.session_info(key);
                self.answer(to, &info);
                self.forget_unless_kept(key);
            }
            method::SESSION_REMOVE => self.serve(asked, Hub::session_remove)?,
            method::SESSION_UNDO => self.serve(asked, Hub::session_undo)?,
            method::GC => self.collect(to, read_or_default(params)?)?,
            method::USAGE => {
                let asked: UsageParams = read_or_default(params)?;
                let usage = ToClient::Usage { id: to.id.clone(), asked };
                self.clients.respond_with(&mut self.cx, to, None, usage);
            }
            method::DAEMON_LOG_LEVEL => {
                let LogLevelParams { level } = read_or_default(params)?;
                let level = ToClient::LogLevel { id: to.id.clone(), level };
                self.clients.respond_with(&mut self.cx, to, None, level);
            }
            method::METRICS => {
                self.send_status(to, StatusPart::Metrics(Box::new(self.metrics())));
            }
            method::TRACE => self.begin_trace(asked)?,
            method::INTERACTION_LIST => self.list_questions(to),
            method::INTERACTION_ANSWER => self.answer_question(asked)?,
            method::MCP_LIST => self.list_lent_servers(to, &read(params)?)?,
            method::MCP_CALL => self.call_lent_server(asked)?,
            method::POLICY_LIST => {
                let list = self.questions.decisions.info();
                self.answer(to, &list);
            }
            method::POLICY_FORGET => self.serve(asked, |hub, ForgetParams { id }| {
                hub.questions.decisions.forget(&mut hub.cx, id).map(|()| Empty {})
            })?,
            method::POLICY_TEST => self.serve(asked, Hub::test_policy)?,
            method::DAEMON_RESTART => {
                self.check_stays()?;
                let DaemonRestartParams { environment } = read_or_default(params)?;
                // A tool of an agent must not choose what other agents inherit.
                let may_bring = self.clients.may_decide(to.client);
                let brought = Some(environment).filter(|_| may_bring).unwrap_or_default();
                self.leave(to, Some(brought));
            }
            method::DAEMON_STOP if read_or_default::<DaemonStopParams>(params)?.detach => {
                self.leave(to, None);
            }
            method::DAEMON_STOP => {
                self.cx.shutdown.watch(to.clone());
                self.begin_shutdown();
            }
            _ => {
                return Err(Fault::invalid(format!("acpd has no method `{name}`"))
                    .with_code(acp_wire::code::METHOD_NOT_FOUND));
            }
        }
        Ok(())
    }

    /// Answers a request with the result of a method.
    fn serve<P: DeserializeOwned, R: Serialize>(
        &mut self,
        asked: Asked<'_>,
        method: impl FnOnce(&mut Hub, P) -> Result<R, Fault>,
    ) -> Served {
        let result = method(self, read(asked.params)?)?;
        self.answer(asked.to, &result);
        Ok(())
    }

    /// `_acpd/agent/start`, `stop`, `restart` and `_acpd/auth/done`, answered when the shared process
    /// is as wanted.
    fn agent_command(&mut self, Asked { to, method: name, params, .. }: Asked<'_>) -> Served {
        let agent = self.agent_ref(params)?;
        match name {
            method::AGENT_START => {
                self.processes.set_desired(&mut self.cx, &agent, Desired::Up);
                let slot = self.processes.shared(&agent, self.cx.now);
                self.need_agent(slot, Asker::Person)?;
                self.check_idle(slot);
            }
            method::AGENT_STOP => self.stop_agent(&agent),
            method::AGENT_RESTART => self.restart_agent(&agent, read(params)?)?,
            // `AUTH_DONE`.
            _ => {
                self.login_found(&agent, AuthSource::Login);
                self.route();
            }
        }
        let slot = self.processes.shared(&agent, self.cx.now);
        let there = &self.processes[&slot];
        let waits = match name {
            method::AGENT_START => !there.is_up(),
            method::AGENT_STOP => there.host().is_some(),
            method::AGENT_RESTART => true,
            _ => there.state == State::Queued || (there.host().is_some() && !there.is_up()),
        };
        if waits {
            self.processes.may_start(slot)?;
            self.processes.watch(slot, to.clone());
        } else {
            self.answer_agent(to, slot);
        }
        Ok(())
    }

    fn stop_agent(&mut self, agent: &str) {
        self.processes.set_desired(&mut self.cx, agent, Desired::Down);
        self.processes.shared(agent, self.cx.now);
        for slot in self.processes.of_profile(agent) {
            for key in self.sessions.of_slot(slot) {
                self.take_back_steers(key);
            }
            self.begin_stop(slot, StopWhy::ByPerson, STOPPED);
            if self.processes[&slot].host().is_none() {
                self.processes.refuse_waiters(&mut self.cx, slot, Reason::AgentStopped, true);
            }
        }
    }

    fn restart_agent(&mut self, agent: &str, RestartParams { force, .. }: RestartParams) -> Served {
        for slot in self.processes.of_profile(agent).into_iter().filter(|_| !force) {
            if self.processes[&slot].leftovers().is_some() {
                self.processes.may_start(slot)?;
            }
        }
        if self.processes.known(agent).row.desired == Desired::Down {
            self.processes.set_desired(&mut self.cx, agent, Desired::OnDemand);
        }
        // The user wants another try, and the agent may have the session again.
        self.processes.forget_lies(&mut self.cx, agent);
        for slot in self.processes.of_profile(agent) {
            for key in self.sessions.of_slot(slot) {
                if self.session(key).row.rest == Dormant::Lost {
                    self.session_mut(key).row.edit().rest = Dormant::Failed;
                }
            }
            self.unblock_for_next(slot);
            if !self.processes.leave_behind(&mut self.cx, slot) {
                self.begin_stop(slot, StopWhy::Restart, "restarted by a person");
            }
        }
        self.route();
        // Slots with a process start again when it has ended.
        let shared = self.processes.shared(agent, self.cx.now);
        let mut slots = self.processes.of_profile(agent);
        // A dedicated slot starts only if something wants its process.
        slots.retain(|slot| {
            *slot != shared && self.processes.is_wanted(&self.cx, *slot, self.demand(*slot))
        });
        for slot in slots.into_iter().chain([shared]) {
            if self.processes[&slot].host().is_none() {
                self.need_agent(slot, Asker::Person)?;
            }
        }
        Ok(())
    }
}

fn read_or_default<T: DeserializeOwned + Default>(params: Option<&RawValue>) -> Result<T, Fault> {
    match params {
        None => Ok(T::default()),
        Some(_) => read(params),
    }
}
