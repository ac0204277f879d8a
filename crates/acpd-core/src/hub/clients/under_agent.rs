//! Facts for the rules about clients under an agent (`clients/rights.rs`).

use acp_wire::str_at;
use acpd_api::{AnswerParams, SessionRef, is_own};
use serde_json::value::RawValue;

use crate::clients::not_under_agent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, SessionKey};
use crate::params::read;
use crate::session::State;

impl Hub {
    pub(crate) fn may_send(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Fault> {
        let answers_its_own = || self.may_answer_its_own(client, params);
        let ends_turns_of_others = || {
            let key = self.target_session(client, method, params);
            key.is_some_and(|key| self.sessions.has_turns_of_others(client, key))
        };
        self.clients.may_send(client, method, params, answers_its_own, ends_turns_of_others)
    }

    /// Returns an error unless the client runs under the process that holds the session.
    pub(crate) fn must_be_its_own(
        &self,
        client: ClientId,
        key: SessionKey,
        what: &str,
    ) -> Result<(), Fault> {
        if self.is_its_own(client, key) { Ok(()) } else { Err(not_under_agent(what)) }
    }

    fn is_its_own(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        self.clients.may_act_for(client, |host| {
            self.processes.slot_of(host) == Some(session.slot)
                && !matches!(session.state, State::Dormant)
        })
    }

    /// Returns whether a tool may answer this question of another agent: once, after seeing all of
    /// it, in a turn that the tool sent, in a session that its own session began.
    fn may_answer_its_own(&self, client: ClientId, params: Option<&RawValue>) -> bool {
        let Ok(AnswerParams { id, answer, parent, .. }) = read(params) else { return false };
        let its_own = || {
            let open = self.questions.get(InteractionId::parse(&id)?)?;
            let session = self.session(open.session()?);
            let own = self
                .sessions
                .by_number(parent?)
                .ok()
                .filter(|own| self.is_its_own(client, *own))?;
            let own = &self.session(own).row;
            let begun_by = session.kin.parent.as_ref()?;
            let senders = &session.running.as_ref()?.senders;
            let is_its_turn = senders.iter().all(|to| to.client == client) && !senders.is_empty();
            let is_begun_by_it =
                begun_by.agent == *own.agent && begun_by.session_id == *own.public_id;
            // acpd's own questions are for people.
            (is_begun_by_it && is_its_turn && !open.is_own()).then_some(open)
        };
        self.cx.config.delegation.answer && its_own().is_some_and(|open| open.is_for_once(&answer))
    }

    fn target_session(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<SessionKey> {
        if is_own(method) {
            return self.resolve(&read::<SessionRef>(params).ok()?).ok();
        }
        let profile = self.clients.get(&client)?.profile.as_deref()?;
        let id = str_at(params?.get().as_bytes(), &["sessionId"])?;
        let child = || self.sessions.child_by_public_id(profile, &id).map(|(key, ..)| key);
        self.sessions.by_public_id(profile, &id).or_else(child)
    }
}
