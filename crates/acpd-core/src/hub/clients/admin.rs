//! The `_acpd/*` methods: what people and scripts ask about agents and sessions.

use acpd_api::{
    DaemonRestartParams, DaemonStopParams, Empty, LogLevelParams, SessionList, SessionListParams,
    StatusParams, UsageParams, method,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::input::{Batch, StatusPart, ToClient};
use crate::params::read;

impl Hub {
    pub(crate) fn manage(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, method: name, params, .. } = asked;
        match name {
            method::PING => self.answer(to, &Empty {}, out),
            method::WATCH => {
                if self.clients.close_request(to) {
                    self.watch.begin(to.clone());
                }
            }
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
                let usage = ToClient::Usage { id: to.id.clone(), asked };
                self.clients.respond_with(&mut cx!(self, out), to, None, usage);
            }
            method::DAEMON_LOG_LEVEL => {
                let LogLevelParams { level } = read_or_default(params)?;
                let level = ToClient::LogLevel { id: to.id.clone(), level };
                self.clients.respond_with(&mut cx!(self, out), to, None, level);
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
                let may_bring = self.clients.may_decide(to.client);
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
}

fn read_or_default<T: DeserializeOwned + Default>(params: Option<&RawValue>) -> Result<T, Fault> {
    match params {
        None => Ok(T::default()),
        Some(_) => read(params),
    }
}
