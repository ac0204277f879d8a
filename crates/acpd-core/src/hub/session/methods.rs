//! `_acpd/session/*`: the methods that have no file of their own.

use std::collections::BTreeMap;

use acpd_api::{
    AttachParams, AttachResult, CancelParams, CancelResult, LogParams, Reason, RenameParams,
    SearchParams,
};

use crate::clients::{Asked, Served};
use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::hub::names::NameClash;
use crate::input::{LogPage, ReadStyle, Search, ToClient};
use crate::params::{read, valid_name};
use crate::session::turn::Cancel;

const DEFAULT_LOG_PAGE: u32 = 1_000;

const DEFAULT_SEARCH_HITS: u32 = 20;

const MAX_SEARCH_HITS: u32 = 1_000;

const MAX_SEARCH_WORDS: usize = 64;

impl Hub {
    pub(crate) fn session_log(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let params: LogParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let session = self.session(key);
        let page = ToClient::Log(LogPage {
            id: to.id.clone(),
            session: key,
            session_id: session.row.public_id.clone(),
            after: params.after,
            upto: session.head,
            limit: params.limit.unwrap_or(DEFAULT_LOG_PAGE),
        });
        self.clients.respond_with(&mut self.cx, to, None, page);
        Ok(())
    }

    pub(crate) fn session_search(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let SearchParams { words, agent, cwd, limit } = read(params)?;
        if words.iter().all(|word| word.trim().is_empty()) {
            return Err(Fault::invalid("there are no words to look for"));
        }
        if words.len() > MAX_SEARCH_WORDS {
            return Err(Fault::invalid(format!("more than {MAX_SEARCH_WORDS} words to look for")));
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
        // A mistyped agent is an error, not an empty result.
        if let Some(agent) = agent.filter(|agent| !self.is_agent(agent)) {
            return Err(self.unknown_agent(&agent));
        }
        let limit = limit.unwrap_or(DEFAULT_SEARCH_HITS).min(MAX_SEARCH_HITS);
        let search = Box::new(Search { words, sessions, limit });
        let search = ToClient::Search { id: to.id.clone(), search };
        self.clients.respond_with(&mut self.cx, to, None, search);
        Ok(())
    }

    pub(crate) fn session_attach(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let params: AttachParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let result = AttachResult { session: self.session_info(key) };
        self.answer(to, &result);
        self.attach(to.client, key, params.role, params.after, ReadStyle::Resume);
        if params.role == acpd_api::Role::Controller {
            self.warm_up(key);
        }
        Ok(())
    }

    pub(crate) fn session_rename(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let params: RenameParams = read(params)?;
        let key = self.resolve(&params.session)?;
        if let Some(name) = &params.name {
            valid_name(name)?;
            let row = &self.session(key).row;
            if let Some(clash) = self.name_clash(&row.agent, &row.cwd, name, Some(key)) {
                let hint = match clash {
                    // Each command would need `--agent` to tell the two apart.
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
        self.answer(to, &info);
        Ok(())
    }

    pub(crate) fn session_cancel(&mut self, asked: Asked<'_>) -> Served {
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
            self.cancel_running(key, Cancel::by(by), None);
        } else {
            self.cancel(key, by, None);
        }
        let session = self.session_info(key);
        self.answer(to, &CancelResult { session, running, taken_back, prompts });
        Ok(())
    }
}
