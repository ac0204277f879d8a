//! Titles of sessions: the user's, else the agent's.
//!
//! A user's title stays until a user changes or removes it; the agent's is remembered meanwhile. A
//! title of the agent does not count if it repeats the user's, the words with which a summary
//! begins, or text that a client put around the user's.
//!
//! A title is text for people. A name is a handle: short, unique, and given to commands.

use acp_wire::acp::{SessionUpdate, SetTitleParams, Update};
use acp_wire::{Id, StateKey, build, str_at};
use acpd_api::TitleParams;
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::params::read;
use crate::record::EventKind;
use crate::requests::purpose::{Purpose, SET_TITLE};
use crate::session::State;
use crate::session::title::one_line;

impl Hub {
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

    pub(crate) fn session_title(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let params: TitleParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let title = params.title.as_deref().map(one_line).transpose()?;
        self.give_title(key, title, to.client);
        let info = self.session_info(key);
        self.answer(to, &info);
        Ok(())
    }

    fn give_title(&mut self, key: SessionKey, title: Option<String>, by: ClientId) {
        let row = &mut self.session_mut(key).row;
        if row.own_title == title {
            return;
        }
        row.edit().own_title = title;
        let row = &self.session(key).row;
        let update = Update::SessionInfoUpdate { title: row.shown_title() };
        let update = SessionUpdate { session_id: &row.public_id, update };
        let line = build::notification("session/update", &update);
        let line = self.sessions.merge_info(key, line);
        self.append(key, EventKind::State(StateKey::Info), line, Some(by));
        self.hand_title_over(key);
    }

    fn hand_title_over(&mut self, key: SessionKey) {
        let session = self.session(key);
        let (slot, known) = (session.slot, self.processes.known(&session.row.agent));
        let takes = known.capabilities.title && !self.processes.is_clogged(slot);
        let is_live = matches!(session.state, State::Live);
        let Some(host) = self.processes[&slot].usable_host().filter(|_| takes && is_live) else {
            return;
        };
        let Some(title) = session.row.own_title.clone() else { return };
        let session_id = session.row.agent_id.clone();
        // The answer does not matter: the title counts here in any case.
        let ask = self.ask(host, Purpose::Title { session: key });
        let params = SetTitleParams { session_id: &session_id, title: &title };
        self.processes.write(
            &mut self.cx,
            slot,
            build::request(&Id::issued(ask), SET_TITLE, &params),
        );
    }
}
