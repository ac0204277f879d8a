//! Rights of clients that run under an agent. They are checked here only.
//!
//! [`acpd_api::under_agent`] lists the rights. The daemon looks at the processes between agent and
//! client, which prevents accidents but is no security boundary.
//!
//! Architecture invariant: a client under an agent decides nothing for a person and ends nothing
//! that a person has begun, except, if the user allows it, for questions of the agents that it
//! works with.

use acp_wire::locate;
use acpd_api::under_agent::FLAGS;
use acpd_api::{NAMESPACE, Reason, UnderAgent};
use serde_json::value::RawValue;

use crate::clients::Clients;
use crate::fault::Fault;
use crate::ids::{ClientId, HostId};
use crate::input::ClientOrigin;

impl Clients {
    pub(crate) fn may_decide(&self, client: ClientId) -> bool {
        self.connected.get(&client).is_some_and(|here| !here.under_agent)
    }

    /// # Errors
    /// When a client under an agent may not send this.
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
            // `may_act_for` checks these when the session is known.
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

    /// A client under an agent may act only for sessions of that process.
    pub(crate) fn may_act_for(&self, client: ClientId, holds_it: impl Fn(HostId) -> bool) -> bool {
        match self.connected.get(&client).map(|here| here.origin) {
            None | Some(ClientOrigin::User) => true,
            Some(ClientOrigin::Agent(host)) => host.is_some_and(holds_it),
        }
    }
}

/// `what` follows "may not".
pub(crate) fn not_under_agent(what: &str) -> Fault {
    let text = format!("a process that runs under an agent may not {what}");
    let mut fault = Fault::invalid(text);
    fault.data.reason = Reason::UnderAgent;
    fault.hint("do it in a terminal or an editor of your own")
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
