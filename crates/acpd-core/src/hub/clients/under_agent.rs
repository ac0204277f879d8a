//! Rights of clients that run under an agent. They are checked here only.
//!
//! [`acpd_api::under_agent`] lists the rights. The daemon looks at the processes between agent and
//! client, which prevents accidents but is no security boundary.
//!
//! Architecture invariant: a client under an agent decides nothing for a person and ends nothing
//! that a person has begun, except, if the user allows it, for questions of the agents that it
//! works with.

use acp_wire::{code, locate, str_at};
use acpd_api::under_agent::FLAGS;
use acpd_api::{AnswerParams, NAMESPACE, Reason, SessionRef, UnderAgent, is_own};
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, SessionKey};
use crate::input::ClientOrigin;
use crate::params::read;

impl Hub {
    /// # Errors
    /// When a client under an agent may not send this.
    pub(crate) fn may_send(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Fault> {
        if self.clients.may_decide(client) {
            return Ok(());
        }
        let refused = match UnderAgent::of_method(method) {
            // `must_be_its_own` checks these when the session is known.
            UnderAgent::Allowed | UnderAgent::OwnSessions(_) => None,
            UnderAgent::OwnQuestions(what) => {
                (!self.may_answer_its_own(client, params)).then_some(what)
            }
            UnderAgent::Refused(what) => Some(what),
            UnderAgent::OwnTurns(what) => {
                let key = self.target_session(client, method, params);
                let ends_others = key.filter(|key| self.session(*key).has_turns_of_others(client));
                ends_others.map(|_| what)
            }
        };
        match refused.or_else(|| params.and_then(refused_flag)) {
            None => Ok(()),
            Some(what) => Err(not_under_agent(what)),
        }
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
        match self.clients.get(&client).map(|here| here.origin) {
            None | Some(ClientOrigin::User) => true,
            Some(ClientOrigin::Agent(host)) => {
                host.is_some_and(|host| self.processes.slot_of(host) == Some(session.slot))
                    && !session.is_dormant()
            }
        }
    }

    /// Returns whether a tool may answer this question of another agent: once, after seeing all of
    /// it, in a turn that the tool sent, in a session that its own session began.
    fn may_answer_its_own(&self, client: ClientId, params: Option<&RawValue>) -> bool {
        let Ok(AnswerParams { id, answer, parent, .. }) = read(params) else { return false };
        let its_own = || {
            let open = self.questions.get(InteractionId::parse(&id)?)?;
            let session = self.session(open.session()?);
            let own = self.sessions.by_number(parent?).ok();
            let own = own.filter(|own| self.is_its_own(client, *own))?;
            let own = &self.session(own).row;
            let begun_by = session.kin.parent.as_ref()?;
            let senders = &session.running.as_ref()?.prompt.senders;
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

/// `what` follows "may not".
fn not_under_agent(what: &str) -> Fault {
    let text = format!("a process that runs under an agent may not {what}");
    Fault::new(Reason::UnderAgent, text)
        .with_code(code::INVALID_PARAMS)
        .hint("do it in a terminal or an editor of your own")
}

fn refused_flag(params: &RawValue) -> Option<&'static str> {
    let json = params.get().as_bytes();
    let is_set = |name: &str| {
        locate(json, &["_meta", NAMESPACE, name]).is_some_and(|at| &json[at] != b"null")
    };
    FLAGS.iter().find_map(|(name, side)| match side {
        UnderAgent::Refused(what) if is_set(name) => Some(*what),
        _ => None,
    })
}
