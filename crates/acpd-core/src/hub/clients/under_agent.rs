//! Clients that run under an agent: what they may not do is refused here, and nowhere else.
//!
//! What that is, [`acpd_api::under_agent`] lists. Who runs under an agent, the daemon sees in the processes
//! between the two; it prevents accidents, and is no wall against what hides itself.
//!
//! Architecture invariant: nothing that a client under an agent says decides for a person, or ends what a
//! person has begun; but for questions of the agents that it works with, where the user has said so.

use acp_wire::{locate, str_at};
use acpd_api::under_agent::FLAGS;
use acpd_api::{AnswerParams, NAMESPACE, Reason, SessionRef, UnderAgent, is_own};
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, SessionKey};
use crate::input::ClientOrigin;
use crate::params::read;
use crate::session::State;

impl Hub {
    /// Returns whether a client is connected and may decide for a person: it may be asked, and
    /// serve an agent.
    pub(crate) fn may_decide(&self, client: ClientId) -> bool {
        self.clients.responder(client).is_some()
    }

    /// Returns whether a client may send this.
    ///
    /// # Errors
    /// When it runs under an agent, and this is not for such a client.
    pub(crate) fn may_send(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Fault> {
        if self.may_decide(client) {
            return Ok(());
        }
        let refused = match UnderAgent::of_method(method) {
            // `must_be_its_own` is asked where the session is known.
            UnderAgent::Allowed | UnderAgent::OwnSessions(_) => None,
            UnderAgent::OwnQuestions(what) => {
                (!self.may_answer_its_own(client, params)).then_some(what)
            }
            UnderAgent::Refused(what) => Some(what),
            UnderAgent::OwnTurns(what) => {
                let key = self.session_meant(client, method, params);
                let of_others =
                    key.is_some_and(|key| self.sessions.has_turns_of_others(client, key));
                of_others.then_some(what)
            }
        };
        match refused.or_else(|| params.and_then(refused_flag)) {
            None => Ok(()),
            Some(what) => Err(not_under_agent(what)),
        }
    }

    /// Refuses what is only for sessions of the agent that a client runs under.
    pub(crate) fn must_be_its_own(
        &self,
        client: ClientId,
        key: SessionKey,
        what: &str,
    ) -> Result<(), Fault> {
        if self.is_its_own(client, key) { Ok(()) } else { Err(not_under_agent(what)) }
    }

    /// Returns whether a client may act for a session: below an agent, only for those of that very process.
    fn is_its_own(&self, client: ClientId, key: SessionKey) -> bool {
        match self.clients.get(&client).map(|here| here.origin) {
            None | Some(ClientOrigin::User) => true,
            Some(ClientOrigin::Agent(host)) => {
                let session = self.session(key);
                let slot = host.and_then(|host| self.processes.slot_of(host));
                slot == Some(session.slot) && !matches!(session.state, State::Dormant)
            }
        }
    }

    /// Returns whether a tool may answer this question of another agent in this way: once, in a
    /// turn that it sent, in a session that its own session began; and it allows only what it has
    /// seen completely.
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
            // Questions of acpd are for people.
            (is_begun_by_it && is_its_turn && !open.is_own()).then_some(open)
        };
        self.config.delegation.answer && its_own().is_some_and(|open| open.is_for_once(&answer))
    }

    /// The session whose turns a call may end.
    fn session_meant(
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

/// The refusal of what is not for a client under an agent, in words that follow "may not".
fn not_under_agent(what: &str) -> Fault {
    let text = format!("a process that runs under an agent may not {what}");
    let mut fault = Fault::invalid(text);
    fault.data.reason = Reason::UnderAgent;
    fault.hint("do it in a terminal or an editor of your own")
}

/// The action of a member of `_meta._acpd` in these params that such a client may not do.
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
