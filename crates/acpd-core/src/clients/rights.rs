//! Clients that run under an agent: what they may not do is refused here, and nowhere else.
//!
//! What that is, [`acpd_api::under_agent`] lists. Who runs under an agent, the daemon sees in the processes
//! between the two; it prevents accidents, and is no wall against what hides itself.
//!
//! Architecture invariant: nothing that a client under an agent says decides for a person, or ends what a
//! person has begun; but for questions of the agents that it works with, where the user has said so.

use acp_wire::locate;
use acpd_api::under_agent::FLAGS;
use acpd_api::{NAMESPACE, Reason, UnderAgent};
use serde_json::value::RawValue;

use crate::clients::Clients;
use crate::fault::Fault;
use crate::ids::{ClientId, HostId};
use crate::input::ClientOrigin;

impl Clients {
    /// Returns whether a client is connected and may decide for a person: it may be asked, and
    /// serve an agent.
    pub(crate) fn may_decide(&self, client: ClientId) -> bool {
        self.connected.get(&client).is_some_and(|here| !here.under_agent)
    }

    /// Returns whether a client may send this. Facts: it may answer this question; it is about a session in which
    /// turns of others run or wait.
    ///
    /// # Errors
    /// When it runs under an agent, and this is not for such a client.
    pub(crate) fn may_send(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
        answers_its_own: impl FnOnce() -> bool,
        ends_turns_of_others: impl FnOnce() -> bool,
    ) -> Result<(), Fault> {
        if self.may_decide(client) {
            return Ok(());
        }
        let refused = match UnderAgent::of_method(method) {
            // `may_act_for` is asked where the session is known.
            UnderAgent::Allowed | UnderAgent::OwnSessions(_) => None,
            UnderAgent::OwnQuestions(what) => (!answers_its_own()).then_some(what),
            UnderAgent::Refused(what) => Some(what),
            UnderAgent::OwnTurns(what) => ends_turns_of_others().then_some(what),
        };
        match refused.or_else(|| params.and_then(refused_flag)) {
            None => Ok(()),
            Some(what) => Err(not_under_agent(what)),
        }
    }

    /// Returns whether a client may act for a session: below an agent, only for those of that very process.
    pub(crate) fn may_act_for(&self, client: ClientId, holds_it: impl Fn(HostId) -> bool) -> bool {
        match self.connected.get(&client).map(|here| here.origin) {
            None | Some(ClientOrigin::User) => true,
            Some(ClientOrigin::Agent(host)) => host.is_some_and(holds_it),
        }
    }
}

/// The refusal of what is not for a client under an agent, in words that follow "may not".
pub(crate) fn not_under_agent(what: &str) -> Fault {
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
