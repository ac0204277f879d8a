//! Interactions: questions of an agent that wait for a person.
//!
//! ```text
//!  request ─▶ open ── first valid answer of a controller ─▶ answered, withdrawn from the others
//!               │ └── turn over, process gone, agent's $/cancel_request ─▶ withdrawn
//!               └─── nobody there: stays open, offered to whoever attaches
//! ```
//!
//! Architecture invariant: nothing answers an interaction because nobody is there, and a malformed
//! answer is never consent.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::acp::{PermissionAnswer, PermissionRequest};
use acp_wire::{ErrorObject, Id, Outcome, build, code, set_id, set_member};
use acpd_api::Role;
use bytes::Bytes;
use serde_json::json;

use crate::agent::AgentId;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Batch, Effect};
use crate::record::{InteractionRow, Record};

/// An open question.
#[derive(Debug)]
pub(crate) struct Interaction {
    pub(crate) session: SessionKey,
    pub(crate) host: HostId,
    /// The agent's own id of the request.
    pub(crate) agent_request: Id,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    /// Ids of the options that may be chosen.
    pub(crate) options: Vec<String>,
    /// How often a client gave an answer that means nothing.
    refused: BTreeMap<ClientId, u32>,
    /// Who has been asked under the number of the interaction itself.
    asked: BTreeSet<ClientId>,
}

impl Interaction {
    pub(crate) fn new(
        session: SessionKey,
        host: HostId,
        agent_request: Id,
        line: Bytes,
        options: Vec<String>,
    ) -> Interaction {
        let (refused, asked) = (BTreeMap::new(), BTreeSet::new());
        Interaction { session, host, agent_request, line, options, refused, asked }
    }

    /// A client has had the question since before it came back.
    pub(crate) fn was_offered(&mut self, client: ClientId) {
        self.asked.insert(client);
    }
}

/// Questions of one session that may be open at once.
const OPEN: usize = 64;

/// How often one client is asked the same question before it is given up.
const ASKED: u32 = 3;

impl Hub {
    /// `session/request_permission` of an agent.
    pub(crate) fn permission_asked(
        &mut self,
        slot: AgentId,
        host: HostId,
        id: &Id,
        line: &Bytes,
        out: &mut Batch,
    ) {
        let request = match acp_wire::parse(line) {
            Ok(acp_wire::Message::Request { params: Some(params), .. }) => {
                PermissionRequest::from_raw(params).map_err(|error| error.to_string())
            }
            _ => Err("params are missing".to_owned()),
        };
        let refusal = match request {
            Err(reason) => reason,
            Ok(request) => match self.routes.get(&slot).and_then(|r| r.get(&*request.session_id)) {
                None => format!("no session `{}`", request.session_id),
                Some(&key) if self.session(key).interactions.len() >= OPEN => {
                    format!("{OPEN} questions of this session are open already")
                }
                Some(_) if self.is_asked(host, id) => format!("the id {id} is open already"),
                Some(&key) => {
                    let options = request.options.into_iter().map(|o| o.option_id).collect();
                    return self.open_interaction(key, host, id, line, options, out);
                }
            },
        };
        let error = ErrorObject::new(code::INVALID_PARAMS, refusal);
        self.host_write(slot, build::error(id, &error), out);
    }

    fn is_asked(&self, host: HostId, id: &Id) -> bool {
        self.interactions.values().any(|open| open.host == host && open.agent_request == *id)
    }

    fn open_interaction(
        &mut self,
        key: SessionKey,
        host: HostId,
        id: &Id,
        line: &Bytes,
        options: Vec<String>,
        out: &mut Batch,
    ) {
        let slot = self.session(key).slot;
        if self.session(key).running.as_ref().is_some_and(|turn| turn.cancelling.is_some()) {
            // The turn is to end; asking a person now would only hold it up.
            let line = build::response(id, &PermissionAnswer::Cancelled);
            self.host_write(slot, line, out);
            return;
        }
        let interaction = InteractionId(self.ids.issue());
        let line = self.to_public_id(key, line.clone());
        out.records.push(Record::Interaction(InteractionRow {
            id: interaction,
            session: key,
            host,
            line: line.clone(),
            at: self.now,
        }));
        out.durable = true;
        self.session_mut(key).interactions.insert(interaction);
        let open = Interaction::new(key, host, id.clone(), line, options);
        self.interactions.insert(interaction, open);
        self.tell_state(key, out);
        let attached: Vec<_> = self.session(key).attached.keys().copied().collect();
        for client in attached {
            self.offer(client, interaction, out);
        }
    }

    /// Offers every open interaction of a session to a client that has just come.
    pub(crate) fn offer_all(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        for interaction in self.session(key).interactions.clone() {
            self.offer(client, interaction, out);
        }
    }

    pub(crate) fn is_controller(&self, client: ClientId, key: SessionKey) -> bool {
        let attached = self.sessions.get(&key).and_then(|session| session.attached.get(&client));
        attached.is_some_and(|attached| attached.role == Role::Controller)
    }

    fn offer(&mut self, client: ClientId, interaction: InteractionId, out: &mut Batch) {
        let Some(open) = self.interactions.get(&interaction) else { return };
        let key = open.session;
        if !self.is_controller(client, key) || self.ledger.is_offered(client, interaction) {
            return;
        }
        let Some(open) = self.interactions.get_mut(&interaction) else { return };
        // The first time under a number that the next daemon knows, too.
        let is_first = open.asked.insert(client);
        let ask = if is_first { interaction.0 } else { self.ids.issue() };
        let line = set_id(&open.line, &Id::from(ask));
        self.ledger.offer(client, ask, interaction);
        self.send_behind(client, Some(key), Effect::Send { client, line }, out);
    }

    /// A client answered an offer.
    pub(crate) fn interaction_answered(
        &mut self,
        client: ClientId,
        id: &Id,
        outcome: Outcome<'_>,
        out: &mut Batch,
    ) {
        // Late answers, answers to notifications and answers to nothing end here.
        let Some(interaction) = self.ledger.offered(client, id) else { return };
        let Some(open) = self.interactions.get(&interaction) else { return };
        if !self.is_controller(client, open.session) {
            return;
        }
        // An error: this client cannot show it. The question waits for another one.
        let Outcome::Result(result) = outcome else { return };
        let answer = PermissionAnswer::from_raw(result).ok().filter(|answer| match answer {
            PermissionAnswer::Selected(option) => open.options.contains(option),
            PermissionAnswer::Cancelled => true,
        });
        match answer {
            Some(answer) => self.answer_interaction(interaction, &answer, out),
            None => self.ask_again(client, interaction, out),
        }
    }

    /// An answer that means nothing is no answer: the client is asked again, but not for ever.
    fn ask_again(&mut self, client: ClientId, interaction: InteractionId, out: &mut Batch) {
        let Some(open) = self.interactions.get_mut(&interaction) else { return };
        let refused = open.refused.entry(client).or_insert(0);
        *refused += 1;
        if *refused < ASKED {
            self.offer(client, interaction, out);
        }
    }

    fn answer_interaction(
        &mut self,
        interaction: InteractionId,
        answer: &PermissionAnswer,
        out: &mut Batch,
    ) {
        let Some(open) = self.interactions.remove(&interaction) else { return };
        let line = build::response(&open.agent_request, answer);
        if let Some(&slot) = self.hosts.get(&open.host) {
            self.host_write(slot, line, out);
        }
        out.durable = true;
        self.close_interaction(interaction, open.session, out);
    }

    /// Answers every open interaction of a session with `cancelled`, as a client that cancels must.
    pub(crate) fn cancel_interactions(&mut self, key: SessionKey, out: &mut Batch) {
        for interaction in self.session(key).interactions.clone() {
            self.answer_interaction(interaction, &PermissionAnswer::Cancelled, out);
        }
    }

    /// Takes every open interaction of a session back: there is nobody to answer to any more.
    pub(crate) fn close_interactions(&mut self, key: SessionKey, out: &mut Batch) {
        for interaction in std::mem::take(&mut self.session_mut(key).interactions) {
            self.interactions.remove(&interaction);
            self.close_interaction(interaction, key, out);
        }
    }

    fn close_interaction(&mut self, interaction: InteractionId, key: SessionKey, out: &mut Batch) {
        out.records.push(Record::InteractionGone { id: interaction });
        self.session_mut(key).interactions.remove(&interaction);
        for (client, id) in self.ledger.withdraw(interaction) {
            let line = build::notification("$/cancel_request", &json!({ "requestId": id }));
            self.send_behind(client, Some(key), Effect::Send { client, line }, out);
        }
        self.tell_state(key, out);
    }

    /// A client that goes on without a session, or only watches it, is not asked any more.
    pub(crate) fn take_back_offers(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        for interaction in self.session(key).interactions.clone() {
            if let Some(id) = self.ledger.take_back(client, interaction) {
                let line = build::notification("$/cancel_request", &json!({ "requestId": id }));
                self.send_behind(client, Some(key), Effect::Send { client, line }, out);
            }
        }
    }

    /// `$/cancel_request` of an agent for a request of its own.
    pub(crate) fn withdraw_request(
        &mut self,
        slot: AgentId,
        host: HostId,
        request: &Id,
        out: &mut Batch,
    ) {
        let found = self
            .interactions
            .iter()
            .find(|(_, open)| open.host == host && open.agent_request == *request);
        let Some((&interaction, open)) = found else { return };
        let key = open.session;
        self.interactions.remove(&interaction);
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.host_write(slot, build::error(request, &error), out);
        self.close_interaction(interaction, key, out);
    }

    /// A line from the agent, with the id that clients use.
    pub(crate) fn to_public_id(&self, key: SessionKey, line: Bytes) -> Bytes {
        let row = &self.session(key).row;
        if row.agent_id == row.public_id {
            return line;
        }
        set_member(&line, &["params", "sessionId"], json!(row.public_id).to_string().as_bytes())
    }
}
