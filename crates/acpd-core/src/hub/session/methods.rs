//! `_acpd/session/*`: the methods that have no file of their own.
//!
//! Titles of sessions: the user's, else the agent's.
//!
//! A user's title stays until a user changes or removes it; the agent's is remembered meanwhile. A
//! title of the agent does not count if it repeats the user's, the words with which a summary
//! begins, or text that a client put around the user's.
//!
//! A title is text for people. A name is a handle: short, unique, and given to commands.

use std::collections::BTreeMap;

use acp_wire::acp::Update;
use acp_wire::{StateKey, str_at};
use acpd_api::{
    AttachParams, AttachResult, CancelParams, CancelResult, LabelParams, LogParams, RenameParams,
    SearchParams, SessionInfo,
};
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::input::{LogPage, ReadStyle, Search, ToClient};
use crate::params::{read, valid_labels, valid_name};
use crate::record::Reads;
use crate::record::{EventKind, Purpose, SET_TITLE};
use crate::session::title::one_line;
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
            reads: if params.originals { Reads::Both } else { Reads::First },
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
        self.cx.index();
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
        let after = params.after.unwrap_or(self.session(key).head);
        self.attach(to.client, key, params.role, Some(after), ReadStyle::Resume);
        if params.role == acpd_api::Role::Controller {
            self.warm_up(key);
        }
        Ok(())
    }

    pub(crate) fn session_rename(&mut self, params: RenameParams) -> Result<SessionInfo, Fault> {
        let key = self.resolve(&params.session)?;
        if let Some(name) = &params.name {
            valid_name(name)?;
            let row = &self.session(key).row;
            let free = self.name_is_free(&row.agent, &row.cwd, name, Some(key));
            free.map_err(|fault| fault.hint("choose another name"))?;
            let others = self.sessions.values().map(|other| &other.row);
            let mut same = others.filter(|it| it.cwd == row.cwd && it.name == params.name);
            // Each command would need `--agent` to tell the two apart.
            if let Some(other) = same.find(|other| other.agent != row.agent) {
                let hint = format!("it is a session of {}; choose another name", other.agent);
                return Err(name_taken(name, &row.cwd).hint(hint));
            }
        }
        self.session_mut(key).row.edit().name = params.name;
        Ok(self.session_info(key))
    }

    pub(crate) fn session_label(&mut self, params: LabelParams) -> Result<SessionInfo, Fault> {
        let LabelParams { session, add, remove } = params;
        let key = self.resolve(&session)?;
        let row = &mut self.session_mut(key).row;
        let kept = row.labels.iter().filter(|label| !remove.contains(label)).cloned();
        let labels =
            valid_labels(kept.chain(add)).map_err(|fault| fault.session(&row.public_id))?;
        if row.labels != labels {
            row.edit().labels = labels;
        }
        Ok(self.session_info(key))
    }

    pub(crate) fn session_cancel(
        &mut self,
        params: CancelParams,
        client: ClientId,
    ) -> Result<CancelResult, Fault> {
        let CancelParams { session: wanted, turn_only, background, by } = params;
        let key = self.resolve(&wanted)?;
        // The work has no sender, so it may be a person's.
        if background && !self.clients.may_decide(client) {
            self.must_be_its_own(client, key, "end the work of a session of another agent")?;
        }
        let session = self.session(key);
        if background {
            if session.row.background.is_empty() {
                return Err(session.no_background());
            }
            let asked = Some(self.end_work(key));
            let session = self.session_info(key);
            return Ok(CancelResult { background: asked, ..CancelResult::of(session) });
        }
        let (running, waiting) = (session.running.is_some(), session.queue.len() as u32);
        let taken_back = if turn_only { 0 } else { waiting };
        let prompts = if turn_only { Vec::new() } else { session.queue_info().prompts };
        if !running && taken_back == 0 {
            return Err(session.no_turn());
        }
        let by = self.clients.name_of(client, by);
        if turn_only {
            self.cancel_running(key, Cancel::by(by), None);
        } else {
            self.cancel(key, by, None);
        }
        let session = self.session_info(key);
        Ok(CancelResult { running, taken_back, prompts, ..CancelResult::of(session) })
    }

    /// No agent is started or woken for it.
    pub(crate) fn set_title(&mut self, asked: Asked<'_>, key: SessionKey) -> Served {
        let Asked { to, params, .. } = asked;
        let title = params.and_then(|params| str_at(params.get().as_bytes(), &["title"]));
        let title = title.ok_or_else(|| Fault::invalid("`title` is missing, or is no text"))?;
        let title = one_line(&title)?;
        self.give_title(key, Some(title.clone()), to.client);
        self.answer(to, &json!({ "title": title }));
        Ok(())
    }

    pub(crate) fn give_title(&mut self, key: SessionKey, title: Option<String>, by: ClientId) {
        let row = &mut self.session_mut(key).row;
        if row.own_title == title {
            return;
        }
        row.edit().own_title = title;
        let session = self.session_mut(key);
        let update = Update::SessionInfoUpdate { title: session.row.shown_title() };
        let line = session.merge_info(session.update_line(update));
        self.append(key, EventKind::State(StateKey::Info), line, Some(by));
        let session = self.session(key);
        let (slot, known) = (session.slot, self.processes.known(&session.row.agent));
        let takes = known.capabilities.title && !self.processes.is_clogged(slot);
        let Some(title) = &session.row.own_title else { return };
        if takes && session.is_live() {
            // The answer does not matter: the title counts here in any case.
            let params = json!({ "sessionId": session.row.agent_id, "title": title });
            self.request(slot, Purpose::Title { session: key }, SET_TITLE, &params);
        }
    }
}
